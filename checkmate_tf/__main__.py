"""`python -m checkmate_tf` is `checkmate-tf`."""

import sys

from checkmate_tf.cli.main import main

sys.exit(main())
