// Threads of our own, and the executor that has none.
#include "common/platform/executor.h"

#include <pthread.h>

#include <string>
#include <thread>
#include <utility>

namespace hdps {

namespace {

class InlineExecutor : public Executor {
 public:
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    for (size_t i = 0; i < count; ++i) body(i);
  }
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return 1; }
};

class SystemThread : public Thread {
 public:
  SystemThread(const char* name, std::function<void()> body) : thread_(std::move(body)) {
    constexpr size_t kNameBytesMax = 15;  // Linux keeps no more.
    pthread_setname_np(thread_.native_handle(), std::string(name, 0, kNameBytesMax).c_str());
  }
  ~SystemThread() override { SystemThread::Join(); }
  void Join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Executor> NewInlineExecutor() { return std::make_unique<InlineExecutor>(); }

std::unique_ptr<Thread> StartThread(const char* name, std::function<void()> body) {
  return std::make_unique<SystemThread>(name, std::move(body));
}

}  // namespace hdps
