#include "probe/gloo/rehearsal.h"

#include "probe/gloo/communicator.h"

namespace nlaunch::probe {
namespace {

class GlooRehearsal : public Rehearsal {
 public:
  GlooRehearsal(std::uint64_t bytes, std::vector<std::unique_ptr<Communicator>> communicators)
      : bytes_(bytes), communicators_(std::move(communicators)) {}

  Result<void> prepare() override {
    for (unsigned i = 0; i < communicators_.size(); ++i) {
      if (auto done = reduce(i); !done) return done;
    }
    return {};
  }

  Result<void> launch(const std::vector<DrillLaunch>& launches) override {
    for (const auto& one : launches) {
      if (auto done = reduce(one.communicator); !done) return done;
    }
    return {};
  }

  Result<bool> finished() override { return true; }
  Result<std::uint64_t> wrong() override { return wrong_; }

 private:
  Result<void> reduce(unsigned communicator) {
    const auto comparison = communicators_[communicator]->check(Collective::all_reduce, bytes_);
    if (!comparison) return std::unexpected(comparison.error());
    wrong_ += comparison->wrong;
    return {};
  }

  std::uint64_t bytes_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::uint64_t wrong_ = 0;
};

}  // namespace

Result<std::unique_ptr<Rehearsal>> rehearse_gloo(const Drill& drill,
                                                 const std::vector<JoinRequest>& requests) {
  if (drill.captured) return failure("probe.unavailable", "Gloo has no CUDA graphs");
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const auto& request : requests) {
    auto joined = join_gloo(request);
    if (!joined) return std::unexpected(joined.error());
    communicators.push_back(std::move(*joined));
  }
  return std::make_unique<GlooRehearsal>(drill.bytes, std::move(communicators));
}

}  // namespace nlaunch::probe
