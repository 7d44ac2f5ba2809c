"""Election by committees with Byzantine members: agreement, lightest bins, a layered network.

`bits` are the contents of messages, `lockstep` the rounds that carry them. `agreement` lets a
committee agree, `bins` elects a part of it and `endgame` one member of it. `misbehaving` is what
bad members do. `single` makes elections of one committee alone.
"""
