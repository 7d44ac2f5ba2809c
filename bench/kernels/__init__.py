"""Speed and memory of the compiled kernels: `python -m bench kernels`."""
