"""The one engine for runs: simulations, sweeps, figures and swarms are played here.

`playing` plays series of runs in blocks until their goals are reached. `executors` has the places
where blocks are played, `engines` the ways to play a block, `block` the sums, and `checkpoint` what
is stored on disk. The same runs give the same numbers, bit for bit, wherever they are played and
however they are cut into blocks.
"""
