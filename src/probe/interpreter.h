#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// `interpreter PYTHON WORKDIR`: that Python as it starts in this environment, with its sitecustomize and
/// .pth files, and its packages by the names of their metadata folders, torch not imported:
///   event "interpreter"; python (asked for), executable, version ("3.11.7"), seconds (until it had started);
///   packages {"torch": "2.9.0+cu130", "nvidia-nccl-cu12": ...} (torch, vllm, and NCCL's wheels), torch_cuda
///   ("13.0", of torch/version.py; empty: built without, or no torch);
///   imported [module]: of those that may use CUDA, what the start has imported; libcuda (path, where it is
///   mapped), devices [path]: /dev/nvidia* that are open; by ["FILE:LINE", or of a .pth file "FILE (its
///   line)"]: what did the first of that; error: why it could not be asked; ended (true): it did start, and
///   ended without a word.
nlohmann::json examine_interpreter(const std::string& python, const std::string& workdir);

/// `torch PYTHON WORKDIR PRELOAD`: imports torch there, PRELOAD in LD_PRELOAD:
///   event "torch"; version, cuda ("13.0"; empty: built without), nccl ("2.28.9": what torch has loaded;
///   empty: built without), seconds, or error.
nlohmann::json import_torch(const std::string& python, const std::string& workdir,
                            const std::string& preload);

}  // namespace nlaunch::probe
