#include "probe/gloo/gloo_module.h"

#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct nlaunch_gloo_context {
  std::shared_ptr<gloo::rendezvous::Context> context;
  uint32_t tag = 0;  // one operation must not take another's messages
};

namespace {

/// Gloo's store, on the mail. Nodes need no folder in common for it.
class MailStore : public gloo::rendezvous::Store {
 public:
  explicit MailStore(const nlaunch_gloo_mail& mail) : mail_(mail) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    known_[key] = data;
    mail_.give(mail_.self, key.c_str(), data.data(), data.size());
  }
  std::vector<char> get(const std::string& key) override {
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    size_t size = 0;
    const auto* data = static_cast<const char*>(mail_.take(mail_.self, key.c_str(), &size));
    if (data == nullptr)
      throw std::runtime_error("the other ranks cannot be found: nobody hands on the mail");
    return known_[key] = {data, data + size};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& /*timeout*/) override {
    wait(keys);
  }

 private:
  const nlaunch_gloo_mail& mail_;
  std::map<std::string, std::vector<char>> known_;
};

/// Runs `work`; an exception becomes a text and -1.
template <class Work>
int guarded(char* error, size_t size, Work work) {
  try {
    work();
    return 0;
  } catch (const std::exception& thrown) {
    std::snprintf(error, size, "%s", thrown.what());
  } catch (...) {
    std::snprintf(error, size, "unknown exception");
  }
  return -1;
}

}  // namespace

extern "C" {

#pragma GCC visibility push(default)

nlaunch_gloo_context* nlaunch_gloo_join(const nlaunch_gloo_mail* mail, const char* interface,
                                        const char* address, int rank, int size, long timeout_ms, char* error,
                                        size_t error_size) {
  auto made = std::make_unique<nlaunch_gloo_context>();
  const int failed = guarded(error, error_size, [&] {
    gloo::transport::tcp::attr attributes;
    if (*address != 0) {
      attributes.hostname = address;
    } else {
      attributes.iface = interface;
    }
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    MailStore store(*mail);
    made->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    made->context->setTimeout(std::chrono::milliseconds(timeout_ms));
    made->context->connectFullMesh(store, device);
  });
  return failed != 0 ? nullptr : made.release();
}

int nlaunch_gloo_all_reduce(nlaunch_gloo_context* context, uint32_t* data, size_t count, long timeout_ms,
                            char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    gloo::AllreduceOptions options(context->context);
    options.setOutput(data, count);
    options.setTag(context->tag++);
    options.setTimeout(std::chrono::milliseconds(timeout_ms));
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<uint32_t>));
    gloo::allreduce(options);
  });
}

int nlaunch_gloo_broadcast(nlaunch_gloo_context* context, uint32_t* data, size_t count, long timeout_ms,
                           char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    gloo::BroadcastOptions options(context->context);
    options.setOutput(data, count);
    options.setRoot(0);
    options.setTag(context->tag++);
    options.setTimeout(std::chrono::milliseconds(timeout_ms));
    gloo::broadcast(options);
  });
}

#pragma GCC visibility pop
}
