#!/usr/bin/env bash
# Installs the Debian packages that hdps needs, without questions; quick if nothing is missing.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config ccache git python3
  libzmq3-dev cppzmq-dev                            # messages between processes
  libsodium-dev libssl-dev                          # secrets and signatures; frames encrypted by AES
  libmicrohttpd-dev                                 # HTTP with TLS
  libsimdjson-dev                                   # JSON of requests for predictions
  libflatbuffers-dev flatbuffers-compiler           # their schema
  libtbb-dev                                        # parallel loops
  libdnnl-dev                                       # matrix products
  librocksdb-dev                                    # rows that do not fit into memory
  libgloo-dev                                       # allreduce between CPUs
  prometheus-cpp-dev                                # figures as text for Prometheus
  libgflags-dev libgoogle-glog-dev                  # command line, logs
  libjs-dygraphs                                    # charts of the page and of the report
  nlohmann-json3-dev libfast-float-dev libxxhash-dev zlib1g-dev libzstd-dev
  libgtest-dev libgmock-dev libbenchmark-dev        # tests, benchmarks
)
# For tests with an sshd, with machines made of namespaces, with the limits of a systemd unit, with a page's
# drawing, or with a browser and others that speak HTTP.
test_packages=(openssh-client openssh-server iproute2 util-linux systemd libseccomp2 graphviz chromium chromium-driver curl openssl)
# For the Python package and its tests.
python_packages=(python3 python3-dev python3-numpy python3-venv pybind11-dev mypy)
# For the tests and examples of models in PyTorch; of everybody's own Python, hdps takes the torch that is there.
torch_packages=(python3-torch)
# For hdps export --format=onnx and for the vectors' index.
export_packages=(libonnx-dev libprotobuf-dev protobuf-compiler libfaiss-dev)
# For --tensorboard of hdps train and hdps-scheduler, and for TFRecord files.
tensorboard_packages=(libisal-dev libprotobuf-dev protobuf-compiler)
# For topics of Kafka as data.
kafka_packages=(librdkafka-dev)
# promtool, for the tests of examples/monitoring. The package's server is not started.
monitoring_packages=(prometheus)
# For checkpoint.copy_to, and for checkpoints in object storage.
copies_packages=(rclone)
# For --elect of hdps-scheduler, and the etcd of its test.
election_packages=(libcurl4-openssl-dev etcd-server)
# For the tests of the manifests that hdps deploy prints.
deploy_packages=(python3-yaml python3-venv)
# For the tests of hdps member and of hdps deploy --to=slurm, which start them in folders of their own.
launcher_packages=(openmpi-bin mpich slurmctld slurmd slurm-client munge)
# For the gates of .ci/run and for scripts/dev/bundle.sh only.
developer_packages=("${test_packages[@]}" "${python_packages[@]}" "${torch_packages[@]}" "${export_packages[@]}" "${tensorboard_packages[@]}" "${kafka_packages[@]}" "${monitoring_packages[@]}" "${copies_packages[@]}" "${deploy_packages[@]}" "${launcher_packages[@]}" "${election_packages[@]}" clang-14 libclang-rt-14-dev llvm-14 clang-format-14 shellcheck patchelf)
# For the pictures of scripts/dev/plot_*.py only.
plot_packages=(python3-matplotlib)
# For benchmarks/peers only: its setup.sh installs PyTorch itself, which compiles against Python's headers.
peer_packages=(python3-venv python3-dev)

usage() {
  echo "usage: scripts/install_deps.sh [--tests] [--developer] [--python] [--export] [--tensorboard] [--kafka] [--parquet]"
  echo "           [--copies] [--deploy] [--launchers] [--election] [--plots] [--peers] [--list]"
  echo "  --tests      also what some tests start: ${test_packages[*]}"
  echo "  --python     also what the Python package needs: ${python_packages[*]}"
  echo "  --export     also what hdps export --format=onnx and a vectors' index need: ${export_packages[*]}"
  echo "  --kafka      also what reads Kafka's topics: ${kafka_packages[*]}"
  echo "  --tensorboard  also what the flag of this name and TFRecord files need: ${tensorboard_packages[*]}"
  echo "  --parquet    also what reads Parquet files, from PyPI (scripts/install_parquet.sh)"
  echo "  --copies     also what copies checkpoints to object storage: ${copies_packages[*]}"
  echo "  --election   also what schedulers that are elected need, and etcd: ${election_packages[*]}"
  echo "  --deploy     also what the tests of hdps deploy need: ${deploy_packages[*]}"
  echo "  --launchers  also MPI and Slurm, which some tests start: ${launcher_packages[*]}"
  echo "  --developer  also what the gates and the bundle need: ${developer_packages[*]}; and as --parquet,"
  echo "               but only with a warning where PyPI cannot be reached"
  echo "  --plots      also what draws the pictures of benchmarks: ${plot_packages[*]}"
  echo "  --peers      also what benchmarks/peers/setup.sh needs: ${peer_packages[*]}"
  echo "  --list       print the packages and install nothing"
}

list_only=false
parquet=  # Whether it is wanted or needed.
for argument in "$@"; do
  case "$argument" in
    --tests) packages+=("${test_packages[@]}") ;;
    --python) packages+=("${python_packages[@]}") ;;
    --export) packages+=("${export_packages[@]}") ;;
    --tensorboard) packages+=("${tensorboard_packages[@]}") ;;
    --copies) packages+=("${copies_packages[@]}") ;;
    --election) packages+=("${election_packages[@]}") ;;
    --launchers) packages+=("${launcher_packages[@]}") ;;
    --deploy) packages+=("${deploy_packages[@]}") ;;
    --kafka) packages+=("${kafka_packages[@]}") ;;
    --parquet) packages+=(python3-venv) parquet=needed ;;
    --developer) packages+=("${developer_packages[@]}") parquet=${parquet:-wanted} ;;
    --plots) packages+=("${plot_packages[@]}") ;;
    --peers) packages+=("${peer_packages[@]}") ;;
    --list) list_only=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "install_deps.sh: error: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
if $list_only; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

# Comes last, because it needs a package.
install_parquet() {
  [[ -n "$parquet" ]] || return 0
  "$(dirname "$(readlink -f "$0")")/install_parquet.sh" && return
  [[ "$parquet" == wanted ]] || exit 3
  echo "install_deps: warning: without Arrow C++, hdps is built without its reader of Parquet files, and tests of it are" >&2
  echo "skipped; scripts/install_deps.sh --parquet tries again" >&2
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_deps.sh: error: this system has no apt-get; hdps is built on Debian 12 or a" >&2
  echo "derivative of it. The packages by name: scripts/install_deps.sh --list" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$state" == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "install_deps: all ${#packages[@]} packages are there"
  install_parquet
  exit 0
fi

become_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_deps.sh: error: installing needs root and there is no sudo; run as root:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 2
  fi
  become_root=(sudo)
fi
echo "install_deps: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
"${become_root[@]}" apt-get update -qq
# At run level 1 no package starts its server.
"${become_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
install_parquet
echo "install_deps: done"
