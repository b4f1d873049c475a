#include "probe/gloo/gloo_module.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

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
  uint32_t tag = 0;  // one operation must not receive another's messages
};

namespace {

/// Distinct from those of Gloo's own operations (gloo/types.h).
constexpr uint8_t kSlotPrefix = 0x7f;

/// Gloo's store, on top of the mail. Nodes need no shared directory for it.
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
      throw std::runtime_error("cannot reach the other ranks: no one relays their messages");
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

struct Call {
  nlaunch_gloo_context& context;
  uint32_t* send;
  uint32_t* receive;
  size_t count;
  std::chrono::milliseconds timeout;

  template <class Options>
  Options options() const {
    Options made(context.context);
    made.setTag(context.tag++);
    made.setTimeout(timeout);
    return made;
  }
};

void all_reduce(const Call& call) {
  auto options = call.options<gloo::AllreduceOptions>();
  options.setInput(call.send, call.count);
  options.setOutput(call.receive, call.count);
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<uint32_t>));
  gloo::allreduce(options);
}

void broadcast(const Call& call) {
  auto options = call.options<gloo::BroadcastOptions>();
  if (call.context.context->rank == 0) options.setInput(call.send, call.count);
  options.setOutput(call.receive, call.count);
  options.setRoot(0);
  gloo::broadcast(options);
}

void all_gather(const Call& call) {
  auto options = call.options<gloo::AllgatherOptions>();
  options.setInput(call.send, call.count / static_cast<size_t>(call.context.context->size));
  options.setOutput(call.receive, call.count);
  gloo::allgather(options);
}

void send_recv(const Call& call) {
  const auto& context = call.context.context;
  const int next = (context->rank + 1) % context->size;
  const int before = (context->rank + context->size - 1) % context->size;
  const auto bytes = call.count * sizeof(uint32_t);
  const auto slot = gloo::Slot::build(kSlotPrefix, call.context.tag++);
  auto out = context->createUnboundBuffer(call.send, bytes);
  auto in = context->createUnboundBuffer(call.receive, bytes);
  out->send(next, slot);
  in->recv(before, slot);
  out->waitSend(call.timeout);
  in->waitRecv(call.timeout);
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

int nlaunch_gloo_run(nlaunch_gloo_context* context, nlaunch_gloo_op op, uint32_t* send, uint32_t* receive,
                     size_t count, long timeout_ms, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    const Call call{*context, send, receive, count, std::chrono::milliseconds(timeout_ms)};
    switch (op) {
      case NLAUNCH_GLOO_ALL_REDUCE:
        return all_reduce(call);
      case NLAUNCH_GLOO_BROADCAST:
        return broadcast(call);
      case NLAUNCH_GLOO_ALL_GATHER:
        return all_gather(call);
      case NLAUNCH_GLOO_SEND_RECV:
        return send_recv(call);
    }
    throw std::runtime_error("no such operation");
  });
}

#pragma GCC visibility pop
}
