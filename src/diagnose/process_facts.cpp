#include "diagnose/process_facts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "sys/run_file.h"

namespace nlaunch::diagnose {
namespace {

namespace fs = std::filesystem;
using PlanJson = nlohmann::ordered_json;

std::string text_at(const PlanJson& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? text::printable(found->get<std::string>()) : "";
}

/// The member `list` of `object` whose member `key` is `value`; null if there is none.
const PlanJson* member_with(const PlanJson& object, const char* list, const char* key,
                            std::string_view value) {
  const auto members = object.is_object() ? object.find(list) : object.end();
  if (!object.is_object() || members == object.end() || !members->is_array()) return nullptr;
  const auto found =
      std::ranges::find_if(*members, [&](const PlanJson& one) { return text_at(one, key) == value; });
  return found == members->end() ? nullptr : &*found;
}

/// Of its node; without a name, of the only one.
fs::path bound_file(const fs::path& attempt, const std::string& host) {
  if (!host.empty()) return host.contains('/') ? fs::path() : attempt / fmt::format("bound.{}.json", host);
  fs::path only;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("bound.") && name.ends_with(".json")) only = entry.path();
  }
  return only;
}

void read_python(const fs::path& file, ProcessFacts& facts) {
  const auto bound =
      file.empty() ? std::nullopt : sys::read_run_file(file, formats::kBound).value_or(std::nullopt);
  const auto* process = bound ? member_with(*bound, "processes", "name", facts.process) : nullptr;
  if (process == nullptr || !process->contains("python")) return;
  const auto& python = process->at("python");
  facts.python = text_at(python, "path");
  facts.python_version = text_at(python, "version");
  const auto named = python.is_object() ? python.find("named") : python.end();
  facts.python_named = named != python.end() && named->is_boolean() && named->get<bool>();
}

std::string at(const std::string& what, const std::string& origin) {
  return origin.empty() ? what : fmt::format("{} ({})", what, origin);
}

std::string role_of(const ProcessFacts& facts) {
  return at(fmt::format("role '{}'", facts.role), facts.role_origin);
}

std::string venv_of(const ProcessFacts& facts) {
  return facts.venv.empty() ? fmt::format("{} sets no `venv`", role_of(facts))
                            : fmt::format("{} has {}", role_of(facts),
                                          at(fmt::format("`venv: {}`", facts.venv), facts.venv_origin));
}

std::string part(const Finding& finding, const char* name) {
  const auto found = finding.parts.find(name);
  return found == finding.parts.end() ? "" : found->second;
}

/// "/usr/bin/python3 (Python 3.11.7)"
std::string with_version(const std::string& python, const ProcessFacts& facts) {
  const bool known = !facts.python_version.empty() && python == facts.python;
  return known ? fmt::format("{} (Python {})", python, facts.python_version) : python;
}

bool is_in(const std::string& path, const std::string& folder) {
  return !folder.empty() && path.starts_with(folder + "/");
}

/// Whether the working directory has the module: then it is the user's own.
bool is_own_module(const std::string& module, const ProcessFacts& facts) {
  std::error_code error;
  const auto path = fs::path(facts.workdir) / module;
  return !facts.workdir.empty() &&
         (fs::is_directory(path, error) || fs::exists(path.string() + ".py", error));
}

struct Package {
  std::string_view module;
  std::string_view name{};  ///< of the package; empty: the same
};
/// What people import in this field. For another name, nobody knows which package is meant, and one that only
/// has the same name can be malicious.
constexpr Package kPackages[] = {
    {"Crypto", "pycryptodome"},
    {"PIL", "pillow"},
    {"attr", "attrs"},
    {"bs4", "beautifulsoup4"},
    {"cv2", "opencv-python"},
    {"dateutil", "python-dateutil"},
    {"dotenv", "python-dotenv"},
    {"flash_attn", "flash-attn"},
    {"flashinfer", "flashinfer-python"},
    {"git", "GitPython"},
    {"hydra", "hydra-core"},
    {"jwt", "PyJWT"},
    {"lightning_fabric", "lightning"},
    {"liger_kernel", "liger-kernel"},
    {"math_verify", "math-verify"},
    {"megatron", "megatron-core"},
    {"pynvml", "nvidia-ml-py"},
    {"pytorch_lightning", "pytorch-lightning"},
    {"sentence_transformers", "sentence-transformers"},
    {"sgl_kernel", "sgl-kernel"},
    {"skimage", "scikit-image"},
    {"sklearn", "scikit-learn"},
    {"transformer_engine", "transformer-engine"},
    {"yaml", "PyYAML"},
    {"zmq", "pyzmq"},
    {"accelerate"},
    {"aiohttp"},
    {"bitsandbytes"},
    {"datasets"},
    {"deepspeed"},
    {"diffusers"},
    {"einops"},
    {"evaluate"},
    {"fastapi"},
    {"gymnasium"},
    {"httpx"},
    {"huggingface_hub"},
    {"jax"},
    {"lightning"},
    {"matplotlib"},
    {"mlflow"},
    {"mpi4py"},
    {"msgspec"},
    {"nixl"},
    {"numpy"},
    {"omegaconf"},
    {"openai"},
    {"openrlhf"},
    {"orjson"},
    {"pandas"},
    {"peft"},
    {"psutil"},
    {"pyarrow"},
    {"pydantic"},
    {"ray"},
    {"requests"},
    {"safetensors"},
    {"scipy"},
    {"sentencepiece"},
    {"sglang"},
    {"swanlab"},
    {"sympy"},
    {"tensorboard"},
    {"tensordict"},
    {"tiktoken"},
    {"tokenizers"},
    {"torch"},
    {"torchao"},
    {"torchaudio"},
    {"torchdata"},
    {"torchvision"},
    {"tqdm"},
    {"transformers"},
    {"triton"},
    {"trl"},
    {"uvicorn"},
    {"verl"},
    {"vllm"},
    {"wandb"},
    {"xformers"},
    {"xgrammar"},
};

/// The package that provides a module; empty: unknown.
std::string_view package_of(std::string_view module) {
  const auto* const found = std::ranges::find(kPackages, module, &Package::module);
  if (found == std::end(kPackages)) return "";
  return found->name.empty() ? found->module : found->name;
}

/// "it: PYTHON -m pip install vllm"
std::string what_to_install(const std::string& module, const std::string& python) {
  const auto package = package_of(module);
  const auto pip = fmt::format("{} -m pip install", text::shell_quote(python));
  return package.empty() ? fmt::format("the package that provides '{}': {} PACKAGE", module, pip)
                         : fmt::format("it: {} {}", pip, package);
}

std::string how_to_get(const std::string& module, const std::string& python, const ProcessFacts& facts) {
  if (is_own_module(module, facts)) {
    return fmt::format("'{}' is in the working directory: write `env: {{PYTHONPATH: {}}}` in {}", module,
                       facts.workdir, role_of(facts));
  }
  const auto install = what_to_install(module, python);
  if (facts.venv.empty())
    return fmt::format("write `venv: DIRECTORY` of an environment that has it in {}, or install {}",
                       role_of(facts), install);
  if (facts.python_named && python.starts_with('/') && !is_in(python, facts.venv)) {
    return fmt::format("start the Python of the venv, `python3` without a directory, in {}",
                       at("its command", facts.command_origin));
  }
  return fmt::format("install {}; or name another environment in {}", install,
                     at("`venv`", facts.venv_origin));
}

void complete_module(Finding& finding, const ProcessFacts& facts) {
  const auto module = part(finding, "module");
  const auto said = part(finding, "python");
  const auto python = said.starts_with('/') ? said : facts.python;
  if (module.empty() || python.empty()) return;
  const auto top = module.substr(0, module.find('.'));
  const auto package = package_of(top);
  const auto which =
      said.empty() && !facts.python_named
          ? fmt::format("{}, the first Python on the PATH of {}", with_version(python, facts), facts.process)
          : fmt::format("{}, which runs {}", with_version(python, facts), facts.process);
  finding.why =
      fmt::format("the Python module '{}' is not installed for {}; {}", module, which, venv_of(facts));
  finding.fix = top == module
                    ? how_to_get(top, python, facts)
                    : fmt::format(
                          "the release of '{}' there may be another one than the program expects: {} -m "
                          "pip show {}",
                          top, text::shell_quote(python), package.empty() ? top : package);
}

void complete_program(Finding& finding, const ProcessFacts& facts) {
  auto program = part(finding, "file");
  if (program.empty()) program = part(finding, "file2");
  if (program.empty()) return;
  const auto command = at("its command", facts.command_origin);
  if (program.contains('/')) {
    finding.why = fmt::format("the program '{}', which {} starts, does not exist", program, facts.process);
    finding.fix = fmt::format("correct the path in {}", command);
    return;
  }
  finding.why =
      fmt::format("the program '{}' is not on the PATH of {}; {}", program, facts.process, venv_of(facts));
  const auto others = fmt::format(
      "load its module in the site profile (`modules: {{load: [NAME]}}`), or give its full path in {}",
      command);
  finding.fix = facts.venv.empty()
                    ? fmt::format("write `venv: DIRECTORY` of the environment that has it in {}, {}",
                                  role_of(facts), others)
                    : fmt::format("install it: {}/bin/python -m pip install PACKAGE, {}",
                                  text::shell_quote(facts.venv), others);
}

void complete_script(Finding& finding, const ProcessFacts& facts) {
  const auto script = part(finding, "file");
  if (script.empty() || facts.workdir.empty()) return;
  const auto start = facts.workdir_origin.empty()
                         ? fmt::format("{}, the directory of the experiment", facts.workdir)
                         : at(fmt::format("`workdir: {}`", facts.workdir), facts.workdir_origin);
  finding.why = fmt::format("the script {} does not exist: relative paths of {} start at {}", script,
                            facts.process, start);
  finding.fix = fmt::format("correct the path in {}", at("its command", facts.command_origin));
  if (!facts.workdir_origin.empty()) finding.fix += fmt::format(", or `workdir` ({})", facts.workdir_origin);
  const auto beside = fs::path(facts.experiment).parent_path() / fs::path(script).filename();
  std::error_code error;
  if (beside != script && fs::is_regular_file(beside, error))
    finding.fix += fmt::format("; there is {}", text::printable(beside.string()));
}

void complete_rendezvous(Finding& finding, const ProcessFacts& facts) {
  if (facts.rendezvous != "none") return;
  finding.why = fmt::format("{} was not given its rank and rendezvous address: {} has no `rendezvous: torch`",
                            facts.process, role_of(facts));
  finding.fix = fmt::format(
      "write `rendezvous: torch` in {}: nlaunch then sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and "
      "MASTER_PORT",
      role_of(facts));
}

struct Completion {
  std::string_view signature;
  void (*complete)(Finding&, const ProcessFacts&);
};
constexpr std::array<Completion, 5> kCompletions{{{"python.no-module", complete_module},
                                                  {"python.no-main", complete_module},
                                                  {"python.no-command", complete_program},
                                                  {"python.no-script", complete_script},
                                                  {"torch.env-missing", complete_rendezvous}}};

}  // namespace

std::optional<ProcessFacts> read_process_facts(const fs::path& run_folder, const fs::path& attempt,
                                               const std::string& process, const std::string& host) {
  const auto plan = sys::read_run_file(run_folder / "plan.json", formats::kPlan).value_or(std::nullopt);
  const auto name = process.substr(0, process.find('.'));
  const auto* role = plan ? member_with(*plan, "roles", "name", name) : nullptr;
  if (role == nullptr) return std::nullopt;
  const auto* venv = member_with(*role, "env", "layer", "venv");
  ProcessFacts facts{.process = process,
                     .role = name,
                     .role_origin = text_at(*role, "origin"),
                     .command_origin = text_at(*role, "command_origin"),
                     .venv = text_at(*role, "venv"),
                     .venv_origin = venv == nullptr ? "" : text_at(*venv, "origin"),
                     .workdir = text_at(*role, "workdir"),
                     .workdir_origin = text_at(*role, "workdir_origin"),
                     .rendezvous = text_at(*role, "rendezvous"),
                     .experiment = text_at(*plan, "experiment"),
                     .python = {},
                     .python_version = {}};
  read_python(bound_file(attempt, host), facts);
  return facts;
}

bool depends_on_process(const std::string& signature) {
  return std::ranges::find(kCompletions, signature, &Completion::signature) != kCompletions.end();
}

void complete(Finding& finding, const ProcessFacts& facts) {
  const auto found = std::ranges::find(kCompletions, finding.signature, &Completion::signature);
  if (found != kCompletions.end()) found->complete(finding, facts);
}

}  // namespace nlaunch::diagnose
