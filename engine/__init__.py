"""The rules of Spectacular Bid as pure functions on frozen values.

`decide` turns a player's request or a service command into events or a refusal and holds every rule; `evolve` folds
events into a `MatchState` and holds none; `view` shows a state to one audience. Integers only, no clock, no chance:
time and the order of the tiles are arguments. Clause ids in comments refer to docs/RULES.md.
"""
