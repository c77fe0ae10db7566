// Runs one piece of work at a time, on the threads that wait for it.
#include "tests/cuda_on_cpu/engine.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace cuda_on_cpu {
namespace {

constexpr std::chrono::seconds kPatience{120};

}  // namespace

void Fail(const std::string& what) {
  std::fprintf(stderr, "cuda_on_cpu: %s\n", what.c_str());
  std::abort();
}

Engine& Engine::Get() {
  static Engine* const engine = new Engine();  // Outlives all that is destroyed after main().
  return *engine;
}

Stream* Engine::NewStream(bool blocking) {
  const auto lock = Lock();
  auto* const stream = new Stream{CurrentDevice(), blocking, {}, nullptr};
  streams_.insert(stream);
  return stream;
}

void Engine::EndStream(Stream* stream) {
  auto lock = Lock();
  WorkUntil(lock, stream, [stream] { return stream->work.empty(); });
  streams_.erase(stream);
  delete stream;
}

void Engine::Add(Stream* stream, Node node) {
  if (stream != nullptr && stream->capture != nullptr) return AddNode(stream, std::move(node));
  Add(stream, std::move(node.work));
}

void Engine::Add(Stream* stream, Work work) {
  if (stream != nullptr && stream->capture != nullptr) Fail("what cannot be a node of a graph");
  auto lock = Lock();
  // Work on the legacy stream runs at once, after that of all streams that synchronize with it.
  if (stream == nullptr) {
    WorkOff(lock, true);
    const DeviceAtWork at_work;
    if (!work()) Fail("work on the legacy stream cannot wait here");
    return;
  }
  if (stream->device != CurrentDevice()) Fail("work given to a stream of another device");
  stream->work.push_back(std::move(work));
  Notify();
}

bool Engine::WorkOn(Stream* stream) {
  if (stream == nullptr || stream->work.empty()) return false;
  if (!stream->work.front()()) return false;
  stream->work.pop_front();
  Notify();
  return true;
}

bool Engine::WorkOnce(Stream* first) {
  std::vector<Stream*> others;
  for (Stream* const stream : streams_) {
    if (stream != first && !stream->work.empty()) others.push_back(stream);
  }
  std::shuffle(others.begin(), others.end(), random_);
  if (!others.empty() && random_() % 4 == 0 && WorkOn(others.back())) return true;
  if (WorkOn(first)) return true;
  for (Stream* const stream : others) {
    if (WorkOn(stream)) return true;
  }
  return false;
}

void Engine::WorkUntil(std::unique_lock<std::mutex>& lock, Stream* stream,
                       const std::function<bool()>& done) {
  while (!done()) {
    bool worked;
    {
      const DeviceAtWork at_work;
      worked = WorkOnce(stream);
      if (worked) CheckRedzones();
    }
    if (worked || done()) continue;
    if (changed_.wait_for(lock, kPatience) == std::cv_status::timeout) {
      Fail("a wait without an end: what it waits for is on no stream, or waits for it");
    }
  }
}

void Engine::WorkABit(std::unique_lock<std::mutex>& lock, Stream* stream) {
  bool worked;
  {
    const DeviceAtWork at_work;
    worked = WorkOnce(stream);
    if (worked) CheckRedzones();
  }
  if (!worked) changed_.wait_for(lock, std::chrono::milliseconds(1));
}

void Engine::WorkOff(std::unique_lock<std::mutex>& lock, bool blocking_only) {
  const int device = CurrentDevice();
  const std::vector<Stream*> all(streams_.begin(), streams_.end());
  for (Stream* const stream : all) {
    if (stream->device != device || (blocking_only && !stream->blocking)) continue;
    if (!streams_.contains(stream)) continue;  // It has ended while another stream was worked off.
    WorkUntil(lock, stream, [&] { return !streams_.contains(stream) || stream->work.empty(); });
  }
}

void SetSeed(uint64_t seed) {
  const auto lock = Engine::Get().Lock();
  Engine::Get().random().seed(seed);
}

void SetDevices(int count, size_t bytes_each) {
  const auto lock = Engine::Get().Lock();
  Engine::Get().devices = count;
  Engine::Get().device_bytes = bytes_each;
}

void SetMemory(size_t bytes) {
  const auto lock = Engine::Get().Lock();
  Engine::Get().device_bytes = bytes;
}

Counters CountersNow() {
  const auto lock = Engine::Get().Lock();
  return Engine::Get().counters;
}

void ForgetPeak() {
  const auto lock = Engine::Get().Lock();
  Engine::Get().counters.bytes_peak = Engine::Get().counters.bytes_in_use;
}

}  // namespace cuda_on_cpu
