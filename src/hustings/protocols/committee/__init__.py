"""Election by committees although members lie: agreement, lightest bins, a layered network.

`bits` is what is said, `lockstep` are the rounds in which it is said; `agreement` lets a committee
agree, `bins` elects a part of it and `endgame` one of it; `misbehaving` is what bad members do, and
`single` makes elections of one committee alone.
"""
