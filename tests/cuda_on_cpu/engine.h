// The streams of all devices of a process: what is on them, and who goes next.
#pragma once

#include <cuda_runtime.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/stand_in.h"

namespace cuda_on_cpu {

// Work on a stream; false: it cannot be done yet, since another stream comes first.
using Work = std::function<bool()>;

struct Event {
  uint64_t recorded = 0, done = 0;  // How often.
  Stream* stream = nullptr;         // Of the last record.
  bool timed = false;
  int64_t done_ns = 0;    // When it was last done, by the host's clock.
  bool captured = false;  // That was into a graph.
};

// One piece of work of a graph. `check` looks at its addresses.
struct Node {
  cudaGraphNodeType type;
  Work work;
  std::function<void()> check;
};

struct Stream {
  int device = 0;
  bool blocking = false;  // Waits for the legacy stream, and that for it.
  std::deque<Work> work;
  Graph* capture = nullptr;  // Takes the work in its place.
};

// ---- graphs.cc. A call that a capture forbids makes it invalid.
//
// cudaSuccess where this thread captures nothing.
cudaError_t ForbiddenInCapture();
cudaError_t Invalidate(Stream* stream, cudaError_t error);
void AddNode(Stream* stream, Node node);

// Says what was done wrong, and ends the program.
[[noreturn]] void Fail(const std::string& what);

// Invariant: work is done as late as it can be: when somebody waits for it, one piece at a time,
// under one lock. Streams take turns that follow from the seed.
class Engine {
 public:
  static Engine& Get();

  std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }
  Stream* NewStream(bool blocking);
  void EndStream(Stream* stream);
  void Add(Stream* stream, Work work);
  // The same, or, where the stream is captured, a node of the graph.
  void Add(Stream* stream, Node node);
  // Works until `done` holds, on `stream` first.
  void WorkUntil(std::unique_lock<std::mutex>& lock, Stream* stream,
                 const std::function<bool()>& done);
  // One piece of work, `stream` first; where there is none, waits a little for another thread's.
  void WorkABit(std::unique_lock<std::mutex>& lock, Stream* stream);
  // Works off all streams of the device at hand; only those that wait for the legacy stream.
  void WorkOff(std::unique_lock<std::mutex>& lock, bool blocking_only);
  // Somebody may go on.
  void Notify() { changed_.notify_all(); }
  std::mt19937_64& random() { return random_; }

  Counters counters;
  int devices = 1;
  size_t device_bytes = size_t{4} << 30;
  bool refuse_epilogues = false, refuse_graphs = false;

 private:
  bool WorkOnce(Stream* first);
  bool WorkOn(Stream* stream);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_{1};
  std::set<Stream*> streams_;
};

int CurrentDevice();

// ---- device_memory.cc: the devices' memory, which the host can only touch while they work.
bool OnDevice(const void* data);
bool Pinned(const void* data);
class DeviceAtWork {  // Under the engine's lock.
 public:
  DeviceAtWork();
  ~DeviceAtWork();
};
// Finds who wrote behind the end of an allocation.
void CheckRedzones();

// ---- blocks.cc
void RunGrid(dim3 grid, unsigned block, const std::function<void()>& thread);

}  // namespace cuda_on_cpu
