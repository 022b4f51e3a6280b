"""Sweeps over PyTorch workloads: times and profiles every point and appends it to a Parquet store."""
