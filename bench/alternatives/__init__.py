"""Ways to have one leader, each used as its own documents say, and what a failure does to them.

`python -m bench alternatives` starts three workers for each way, and kills, ends and pauses the one
that leads. A worker writes into a journal as long as it believes that it leads.
"""
