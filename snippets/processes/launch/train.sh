#!/bin/bash
# Tested with Open MPI 5 on one machine, not on several.
set -euo pipefail

# The file of hosts has a line like 'node1 slots=4' for each machine.
hosts="${1:-hosts}"

# Where JAX is installed, at the same place on all machines.
export PATH="$HOME/venv/bin:$PATH"

# One process for each slot, free to use all cores of its machine.
# -x hands a variable on to the other machines.
mpirun --hostfile "$hosts" --bind-to none -x PATH --output tag python train.py
