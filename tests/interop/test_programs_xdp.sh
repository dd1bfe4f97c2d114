#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Stock programs on the kernel against corq httpd on xdp:. What is checked: head of programs.sh.
exec "$(dirname "$0")/programs.sh" xdp
