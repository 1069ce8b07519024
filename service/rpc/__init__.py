"""The gRPC edge: check, call, map, answer."""
