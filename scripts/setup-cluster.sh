#!/bin/sh
# Makes .venv-cluster: all that .venv holds, and the launchers for Slurm, Ray and joblib with what they need.
# TORCH: as for setup.sh.
set -eu

rm -rf .venv-cluster
case $TORCH in
    system) .venv/bin/python -m venv --system-site-packages .venv-cluster ;;
    *) .venv/bin/python -m venv .venv-cluster ;;
esac
.venv-cluster/bin/python - .venv <<'END'
import pathlib, subprocess, sys, sysconfig

ask = "import sysconfig; print(sysconfig.get_path('purelib'), end='')"
theirs = subprocess.check_output([f"{sys.argv[1]}/bin/python", "-c", ask], text=True)
own = pathlib.Path(sysconfig.get_path("purelib"))
(own / "shared.pth").write_text(f"import site; site.addsitedir({theirs!r})\n")
END
.venv-cluster/bin/python -m pip install --quiet --constraint .venv/constraints.txt \
    --editable '.[slurm,ray]' 'hydra-joblib-launcher>=1.2'
