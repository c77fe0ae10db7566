#!/usr/bin/env python3
"""Trains models beyond Wide&Deep with hdps and with PyTorch in turns, and prints hdps' speed over PyTorch's:
autoint, xdeepfm, fibinet, dcn_v2, dcn_mix and din, each with the same data, sizes, batch and optimizer.

  benchmarks/peers/compare_models.py --bin=build/bin [--case=autoint] [--repeats=5] [--json=FILE]

PyTorch runs compiled (tuned) and not (plain). Without PyTorch it prints a note and ends with status 0.
"""
import cases
import compare
import comparison
import machine


def main(arguments=None):
    flags = compare.shared_parser(__doc__).parse_args(arguments)
    flags.device = "cpu"
    compare.check_shared(flags, cases.MODELS)
    if compare.is_ready(flags):
        compare.compare_all(flags, comparison.systems(False, False), {**machine.cpu(), "threads": flags.threads})


if __name__ == "__main__":
    main()
