# shellcheck shell=bash
# CUDA for the GPU half of the probe, from PyPI: the compiler for this machine, and the headers and static runtime for
# the target architecture. The driver and NCCL are opened at run time; the build needs only NCCL's header.

CUDA_COMPILER=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88)
CUDA_RUNTIME=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)
NCCL_HEADER=nvidia-nccl-cu13==2.28.9

# provide_cuda ARCH: .release-cache/ARCH/cuda
provide_cuda() {
  local arch=$1 cuda=$RELEASE_CACHE/$1/cuda header=$RELEASE_CACHE/nccl-${NCCL_HEADER#*==}.h complete download wheel
  complete=$cuda/complete-$(pins "${CUDA_COMPILER[@]}" "${CUDA_RUNTIME[@]}" "$NCCL_HEADER")
  [[ ! -f $complete ]] || return 0
  say "$arch: downloading the CUDA compiler and static runtime from PyPI (about 120 MB, once)"
  download=$(mktemp -d "$RELEASE_CACHE/cuda.XXXXXX")
  wheels -d "$download" "${CUDA_COMPILER[@]}"
  wheels -d "$download" --platform "manylinux2014_$arch" --platform "manylinux_2_17_$arch" "${CUDA_RUNTIME[@]}"
  if [[ ! -f $header ]]; then
    say "downloading the NCCL header from PyPI (in a wheel of 200 MB, once)"
    wheels -d "$download/nccl" "$NCCL_HEADER"
    "$RELEASE_VENV/bin/python" -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read("nvidia/nccl/include/nccl.h"))' \
      "$download"/nccl/*.whl >"$header.part"
    mv "$header.part" "$header"
  fi
  for wheel in "$download"/*.whl; do "$RELEASE_VENV/bin/python" -m zipfile -e "$wheel" "$download"; done
  rm -rf "$cuda" && mv "$download/nvidia/cu13" "$cuda"
  cp "$header" "$cuda/include/nccl.h"
  cp "$download"/nvidia_cuda_runtime-*.dist-info/licenses/License.txt "$cuda/LICENSE"
  chmod +x "$cuda"/bin/* "$cuda"/nvvm/bin/*
  ln -s lib "$cuda/lib64"
  # FindCUDAToolkit looks for a cross-compilation toolkit in targets/, and for the shared runtime although the static one is linked.
  mkdir "$cuda/targets"
  ln -s .. "$cuda/targets/$arch-linux"
  ln -s libcudart.so.13 "$cuda/lib/libcudart.so"
  rm -rf "$download"
  touch "$complete"
}
