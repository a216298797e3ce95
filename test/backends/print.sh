#!/bin/sh
# A command line that prints what is in the files it is told. A negative exit code is the signal it dies of.
[ -s "$FAKE_STDOUT" ] && cat "$FAKE_STDOUT"
[ -s "$FAKE_STDERR" ] && cat "$FAKE_STDERR" >&2
[ "$FAKE_EXIT" -lt 0 ] && kill "$FAKE_EXIT" $$
exit "$FAKE_EXIT"
