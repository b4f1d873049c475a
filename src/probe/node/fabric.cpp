#include <cstdint>

#include "probe/dynamic_library.h"
#include "probe/output.h"
#include "probe/question.h"

#if __has_include(<rdma/fabric.h>)
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstring>
#include <memory>
#include <set>
#endif

namespace nlaunch::probe {
namespace {

using nlohmann::json;

#if __has_include(<rdma/fabric.h>)

/// The functions that are called. Since 1.7 the structures only grow at their end, and a library returns
/// those of its own version, so those of an older header can be read.
struct Calls {
  int (*getinfo)(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*, fi_info**);
  void (*freeinfo)(fi_info*);
  fi_info* (*dupinfo)(const fi_info*);
  int (*fabric)(fi_fabric_attr*, fid_fabric**, void*);
  const char* (*strerror)(int);

  explicit Calls(const DynamicLibrary& library)
      : getinfo(library.find<decltype(getinfo)>("fi_getinfo")),
        freeinfo(library.find<decltype(freeinfo)>("fi_freeinfo")),
        dupinfo(library.find<decltype(dupinfo)>("fi_dupinfo")),
        fabric(library.find<decltype(fabric)>("fi_fabric")),
        strerror(library.find<decltype(strerror)>("fi_strerror")) {}
  [[nodiscard]] bool complete() const {
    return getinfo != nullptr && freeinfo != nullptr && dupinfo != nullptr && fabric != nullptr &&
           strerror != nullptr;
  }
};
using Info = std::unique_ptr<fi_info, void (*)(fi_info*)>;

/// Everything that the provider has, whatever it requires of its user, as fi_info -p does.
Info hints_for(const Calls& calls, const std::string& provider) {
  Info hints(calls.dupinfo(nullptr), calls.freeinfo);
  if (!hints) return hints;
  constexpr std::uint64_t kAnything = ~std::uint64_t{0};
  hints->mode = hints->domain_attr->mode = kAnything;
  hints->domain_attr->mr_mode = ~3;  // except FI_MR_BASIC and FI_MR_SCALABLE, which are legacy
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  return hints;
}

const char* name_of(fi_link_state state) {
  return state == FI_LINK_UP ? "up" : state == FI_LINK_DOWN ? "down" : "unknown";
}

std::string text_or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

/// "mlx5_0", which has domains "mlx5_0", "mlx5_0-xrc" and "mlx5_0-dgram". Without a NIC the domain itself.
std::string device_of(const fi_info* info) {
  const auto* nic = info->nic;
  const bool named = nic != nullptr && nic->device_attr != nullptr && nic->device_attr->name != nullptr;
  return text_or_empty(named ? nic->device_attr->name : info->domain_attr->name);
}

/// Opens it and closes it again: this needs permission for the NIC (on Slingshot, a service), which a list
/// does not.
int open_domain(const Calls& calls, fi_info* info) {
  fid_fabric* fabric = nullptr;
  if (const int error = calls.fabric(info->fabric_attr, &fabric, nullptr); error != 0) return error;
  fid_domain* domain = nullptr;
  const int error = fi_domain(fabric, info, &domain, nullptr);
  if (error == 0) fi_close(&domain->fid);
  fi_close(&fabric->fid);
  return error;
}

json describe(const Calls& calls, fi_info* info) {
  json out{{"name", device_of(info)},
           {"fabric", text_or_empty(info->fabric_attr->name)},
           {"provider", text_or_empty(info->fabric_attr->prov_name)}};
  if (info->nic != nullptr && info->nic->link_attr != nullptr) {
    constexpr double kGiga = 1e9;
    out["link"] = name_of(info->nic->link_attr->state);
    out["gbits"] = static_cast<double>(info->nic->link_attr->speed) / kGiga;
  }
  const int error = open_domain(calls, info);
  out["opened"] = error == 0;
  if (error != 0) out["error"] = calls.strerror(-error);
  return out;
}

/// Each device once; it is listed for every kind of endpoint.
void ask_provider(const DynamicLibrary& library, const std::string& provider, json& out) {
  const Calls calls(library);
  out["provider"] = provider;
  out["domains"] = json::array();
  const auto hints = calls.complete() ? hints_for(calls, provider) : Info(nullptr, calls.freeinfo);
  if (!hints) {
    out["provider_error"] = library.path() + " is not a libfabric that can be queried";
    return;
  }
  fi_info* found = nullptr;
  const int error = calls.getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints.get(), &found);
  const Info all(found, calls.freeinfo);
  if (error != 0) out["provider_error"] = calls.strerror(-error);
  std::set<std::string> seen;
  for (auto* info = all.get(); info != nullptr; info = info->next) {
    if (seen.insert(device_of(info)).second) out["domains"].push_back(describe(calls, info));
  }
}

#else

void ask_provider(const DynamicLibrary&, const std::string& provider, json& out) {
  out["provider"] = provider;
  out["domains"] = json::array();
  out["provider_error"] = "nlaunch-probe was built without libfabric's headers";
  out["not_built"] = true;
}

#endif

/// `fabric [PROVIDER]`: the libfabric that the loader loads in this environment, and what it offers for a
/// provider ("cxi", "efa", "verbs", "tcp"):
///   event "fabric"; version ("1.17"), path, or error;
///   with a provider: provider, domains [{name (of its NIC, if it has one), fabric, provider
///   ("tcp;ofi_rxm"), opened, and of its NIC, if libfabric knows one: link ("up", "down", "unknown"),
///   gbits}], and provider_error if it offers none. `opened` is false, with `error`, if the domain
///   could not be opened: the provider then has refused this job.
/// Separate from the facts of the machine: a libfabric that loads CUDA takes 0.2 s to load.
json examine_fabric(Arguments arguments) {
  const auto provider = arguments.empty() ? std::string() : arguments[0];
  json out{{"event", "fabric"}};
  const auto library = DynamicLibrary::open("libfabric.so.1");
  const auto version = library ? library->find<std::uint32_t (*)()>("fi_version") : nullptr;
  if (!library) {
    out["error"] = text_of(library.error());
  } else if (version == nullptr) {
    out["error"] = library->path() + " has no fi_version";
  } else {
    const auto code = version();
    out["version"] = fmt::format("{}.{}", code >> 16U, code & 0xffffU);
    out["path"] = library->path();
    if (!provider.empty()) ask_provider(*library, provider, out);
  }
  return out;
}

const Registered<Question> fabric_question{{
    .order = 90,
    .name = "fabric",
    .arguments = "[PROVIDER]",
    .what = "the libfabric that the loader loads in this environment, and what it offers",
    .answer = examine_fabric,
}};

}  // namespace
}  // namespace nlaunch::probe
