"""Closed forms of announce-listen elections (thesis chapter 5): le-a, le-s, le-m, sup, al.

One module per topic. Every result says whether it is exact, a limit or an approximation. A result
that the chapter prints and that does not hold stands under a `printed_` name. N counts members, l
is the probability that a message is lost, D the delay of every message.
"""
