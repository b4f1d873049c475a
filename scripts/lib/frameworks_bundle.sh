# shellcheck shell=bash
# vLLM's CUDA build and TRL for a machine without a network that already has PyTorch and transformers: packs what it lacks in
# files of 47 MB, and makes a Python environment there from both.

FRAMEWORKS_VENV=${FRAMEWORKS_VENV:-$HOME/nlaunch-frameworks/venv}
# Not needed to serve a dense model on Hopper: mixture-of-experts kernels, FlashAttention 2, a router, a static library, and country
# names in other languages.
FRAMEWORKS_LEFT_OUT=(
  'vllm/_moe_C*' vllm/vllm-rs 'vllm/vllm_flash_attn/_vllm_fa2_C*' vllm/third_party/deep_gemm xgrammar/lib xgrammar/include
  pycountry/locales bin .lock
)

# bundle_frameworks FOLDER: needs PyPI, uv, zstd and ten minutes. The bundle includes zstd and its libraries.
bundle_frameworks() {
  local folder=$1 site leave program
  site=$(mktemp -d)
  mkdir -p "$folder/zstd" || return
  python3 -m uv pip install -q --target "$site" --no-deps --only-binary :all: --python-version 3.12 \
    --python-platform x86_64-manylinux_2_39 --link-mode copy -r tests/gpu/frameworks.txt || return
  for leave in "${FRAMEWORKS_LEFT_OUT[@]}"; do
    # shellcheck disable=SC2086  # a pattern
    (cd "$site" && rm -rf $leave)
  done
  strip --strip-debug "$site/xgrammar/libxgrammar_bindings.so" || return  # 50 of its 52 MB
  tar -C "$site" --sort=name --owner=0 --group=0 --exclude=__pycache__ -cf - . | zstd -q -16 --long=27 -T0 |
    split -b 47MB -d - "$folder/frameworks.tar.zst." || return
  rm -rf "$site"
  program=$(command -v zstd)
  cp "$program" "$folder/zstd/"
  ldd "$program" | awk '/=> \// && $1 !~ /^libc\./ { print $3 }' | xargs -r cp -L -t "$folder/zstd"
  du -ch "$folder"/frameworks.tar.zst.* "$folder/zstd"
}

# unpack_frameworks FOLDER: makes FRAMEWORKS_VENV from links to the packages of the machine's python3, with the bundle on top.
# The packages are linked because nlaunch looks for libnccl in the environment of an experiment.
unpack_frameworks() {
  local folder=$1 own site
  own=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || return
  rm -rf "$FRAMEWORKS_VENV"
  python3 -m venv --system-site-packages --without-pip "$FRAMEWORKS_VENV" || return
  site=$("$FRAMEWORKS_VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  rm -rf "$site"
  # Hard links work only within one file system; symbolic links are the fallback.
  cp -al "$own" "$site" 2>/dev/null || { rm -rf "$site" && cp -as "$own" "$site"; } || return
  mkdir "$FRAMEWORKS_VENV/bundled" || return
  cat "$folder"/frameworks.tar.zst.* | LD_LIBRARY_PATH=$folder/zstd "$folder/zstd/zstd" -q -d --long=27 |
    tar -C "$FRAMEWORKS_VENV/bundled" --no-same-owner -xf - || return
  # Files in both are replaced, not written through a link.
  cp -al --remove-destination "$FRAMEWORKS_VENV/bundled/." "$site" && rm -rf "$FRAMEWORKS_VENV/bundled" || return
  # The same script that pip writes, because spawned processes import it.
  printf '%s\n' "#!$FRAMEWORKS_VENV/bin/python" 'import sys' 'from vllm.entrypoints.cli.main import main' \
    "if __name__ == '__main__':" '    sys.exit(main())' >"$FRAMEWORKS_VENV/bin/vllm"
  chmod +x "$FRAMEWORKS_VENV/bin/vllm"
  # The processes of nlaunch and vLLM import the same hundred packages, so compile them once. Some contain templates that are not Python.
  "$FRAMEWORKS_VENV/bin/python" -m compileall -q -j 0 "$site/vllm" "$site/trl" "$site/datasets" "$site/openai" >/dev/null ||
    echo "some files in these packages are not Python; all others are compiled"
  "$FRAMEWORKS_VENV/bin/python" -c 'import torch, transformers, trl, vllm
print("torch", torch.__version__, "transformers", transformers.__version__, "trl", trl.__version__, "vllm", vllm.__version__)'
}
