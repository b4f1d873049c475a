"""Receives the learner's tensors, checks each by its checksum, and ends when the learner says so."""
import sys

import sync_group
import torch


def receive(group, tensors):
    """Returns how many tensors differ from what the learner sent."""
    group.total(0)
    for tensor in tensors:
        group.broadcast(tensor)
    group.wait_for_device()
    own = sync_group.checksums(tensors)
    sent = torch.empty_like(own)
    group.broadcast(sent)
    return int((own != sent).sum().item())


def main():
    group = sync_group.SyncGroup(sync_group.parser(__doc__).parse_args())
    tensors, wrong = [], 0
    while True:
        order, count, kib, number = group.announce(0, 0, 0, 0)
        if order == sync_group.END:
            break
        if len(tensors) != count:
            tensors = sync_group.empty_tensors(count, kib, group.device)
        bad = receive(group, tensors)
        group.total(bad)
        wrong += bad
        print(f"sync {number}: {count} tensors, {bad} wrong", flush=True)
    group.total(0)
    group.close()
    if wrong:
        sys.exit(f"{wrong} tensors arrived wrong")


if __name__ == "__main__":
    main()
