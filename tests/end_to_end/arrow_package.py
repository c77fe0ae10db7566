"""The pyarrow with which the module for Parquet files was built; None where there is none."""
import subprocess
import sys

import harness

sys.path.append(subprocess.run([harness.ROOT / "scripts" / "install_parquet.sh", "--folder"], capture_output=True,
                               text=True, check=True).stdout.strip())
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

READS_PARQUET = pyarrow is not None and (harness.BIN / "libhdps_parquet.so").exists()
