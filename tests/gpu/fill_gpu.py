"""Holds most of a GPU's memory while a command runs: fill_gpu.py GPU COMMAND..."""
import subprocess
import sys

import torch

free, _ = torch.cuda.mem_get_info(int(sys.argv[1]))
held = torch.empty(free - (200 << 20), dtype=torch.uint8, device=f"cuda:{sys.argv[1]}")
sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
