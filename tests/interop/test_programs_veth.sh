#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Stock programs on the kernel against corq httpd on veth:. What is checked: head of programs.sh.
exec "$(dirname "$0")/programs.sh" veth
