/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addresses.h - what --ip and --peer-ip say. Start only, no state; corq_addr_unfit: any thread.
 */
#ifndef CORQ_CTL_ADDRESSES_H
#define CORQ_CTL_ADDRESSES_H

#include "net/addr.h"
#include <corq/instance.h>

/* By side; side B on the loop device only, no side without a device. 0, or -EINVAL and one line. */
int corq_addresses_parse(
	const struct corq_config *c, struct corq_addr_range range[2], char *err, size_t err_len);
/* The two devices that are more than a way out: both ends are ours; none, so handles alone. */
bool corq_config_is_loop(const struct corq_config *c);
bool corq_config_is_none(const struct corq_config *c);
/* NULL, or what the address is that no host can have, in the network of net. */
const char *corq_addr_unfit(const struct corq_addr *a, const struct corq_addr_range *net);

#endif
