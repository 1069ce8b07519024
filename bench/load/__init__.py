"""The load client: a process of its own that plays many matches and reads as little of the answers as it can."""
