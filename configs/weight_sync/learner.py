"""Broadcasts tensors to the engines, several times, and ends well only if every engine got every tensor right."""
import sys
import time

import sync_group
import torch


def fill(tensors, seed):
    torch.manual_seed(seed)
    for tensor in tensors:
        tensor.random_()


def sync_once(group, tensors, number):
    """Returns the number of tensors that arrived wrong, over all engines."""
    fill(tensors, seed=number)
    group.announce(sync_group.SYNC, len(tensors), tensors[0].numel() * 4 // 1024, number)
    group.total(0)
    group.wait_for_device()
    start = time.monotonic()
    for tensor in tensors:
        group.broadcast(tensor)
    group.wait_for_device()
    took = time.monotonic() - start
    group.broadcast(sync_group.checksums(tensors))
    wrong = group.total(0)
    mib = len(tensors) * tensors[0].numel() * 4 / 2**20
    print(f"step {number} weight sync took {took:.3f}s ({len(tensors)} tensors, {mib:.1f} MiB, "
          f"{mib * 2**20 / took / 1e9:.2f} GB/s, {wrong} wrong)", flush=True)
    return wrong


def main():
    parser = sync_group.parser(__doc__)
    parser.add_argument("--tensors", type=int, default=300)
    parser.add_argument("--tensor-kib", type=int, default=64)
    parser.add_argument("--syncs", type=int, default=3)
    options = parser.parse_args()
    group = sync_group.SyncGroup(options)
    tensors = sync_group.empty_tensors(options.tensors, options.tensor_kib, group.device)
    wrong = sum(sync_once(group, tensors, number) for number in range(1, options.syncs + 1))
    group.announce(sync_group.END, 0, 0, 0)
    group.total(0)
    group.close()
    engines = options.world_size - 1
    if wrong:
        sys.exit(f"{wrong} of {options.syncs * options.tensors * engines} tensors arrived wrong")
    print(f"all checks passed: {options.syncs} syncs of {options.tensors} tensors to {engines} engines", flush=True)


if __name__ == "__main__":
    main()
