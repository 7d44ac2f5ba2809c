"""The one engine for runs: simulations, sweeps, figures and swarms are played here.

`playing` plays series of runs in blocks until their goals are reached. `executors` has the places
where blocks are played, `engines` the ways to play one, `goals` the numbers of runs, `block` the
sums, and `checkpoint` what is kept on disk. The same runs give the same numbers, bit for bit,
wherever and in whatever pieces they are played.
"""
