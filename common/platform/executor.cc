// Dedicated threads, and the inline executor.
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
  // The thread sets its own name, so that its body runs under it from the first line on.
  SystemThread(const char* name, std::function<void()> body)
      : thread_([name = std::string(name).substr(0, kNameBytesMax), body = std::move(body)] {
          pthread_setname_np(pthread_self(), name.c_str());
          body();
        }) {}
  ~SystemThread() override { SystemThread::Join(); }
  void Join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  static constexpr size_t kNameBytesMax = 15;  // The limit of Linux.
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Executor> NewInlineExecutor() { return std::make_unique<InlineExecutor>(); }

std::unique_ptr<Thread> StartThread(const char* name, std::function<void()> body) {
  return std::make_unique<SystemThread>(name, std::move(body));
}

}  // namespace hdps
