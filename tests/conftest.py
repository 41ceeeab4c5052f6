"""What holds for every test."""

import signal

# A shell that starts the tests in the background makes them, and every program they start, deaf to Ctrl-C; the tests
# that send it would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
