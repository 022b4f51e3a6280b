"""Two sides of many points held against each other, and one quantity over many sweeps.

A side (sides.py) is written as a baseline, one Parquet file; two baselines are compared (compared.py, sql/comparison/).
"""
