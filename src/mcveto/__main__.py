"""`python -m mcveto`."""

from mcveto.cli.main import main

main()
