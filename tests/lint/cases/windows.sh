#!/bin/bash
export NCCL_DEBUG=INFO
export NCCL_CROSS_NIC=1
