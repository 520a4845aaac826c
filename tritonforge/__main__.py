"""`python -m tritonforge`: the same command line as the `tritonforge` script."""

from tritonforge.cli.main import main

if __name__ == "__main__":
    main()
