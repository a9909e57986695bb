"""``python -m golde``: the command line where its script is not on the path."""

from golde.cli.main import main

if __name__ == "__main__":
    main()
