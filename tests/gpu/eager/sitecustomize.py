"""What some sites put into every Python: torch is there, and a GPU is chosen, before a launcher has had a word."""
import torch

torch.cuda.init()
