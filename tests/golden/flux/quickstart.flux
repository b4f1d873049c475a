#!/bin/bash
# Job for Flux, made by nlaunch: quickstart on tuolumne, from /home/me/project/configs/quickstart.yaml
# What runs where, with which GPUs and which environment, is in its plan. To look at it:
# nlaunch plan --plan /home/me/runs/quickstart/plans/0123456789abcdef.json
# The plan is frozen: what is changed in the experiment from now on changes nothing here.
#flux: --job-name=quickstart
#flux: --nodes=2
#flux: --exclusive
#flux: '--output=/home/me/runs/quickstart/flux-{{id}}.log'
#flux: --queue=batch
#flux: --bank=lab
#flux: --time-limit=4h
#flux: '--requires=host:a b'
#flux: --setattr=system.x=1
#flux: --unbuffered

# Flux signals this process, so it becomes nlaunch.
exec /opt/nlaunch/bin/nlaunch run --plan /home/me/runs/quickstart/plans/0123456789abcdef.json --runs-dir /home/me/runs --here
