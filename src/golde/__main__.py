"""The command line: ``golde``, and ``python -m golde`` where that is not on the path."""


def main() -> None:
    """Run it; what it needs is imported here, so that Ctrl-C ends that too without a traceback."""
    try:
        from golde.cli.main import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
