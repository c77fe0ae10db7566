// Asks etcd over its HTTP gateway, by libcurl where hdps was built with it.
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "common/election/etcd.h"

#ifdef HDPS_WITH_ELECTION
#include <curl/curl.h>
#endif

namespace hdps {

#ifdef HDPS_WITH_ELECTION
namespace {

constexpr size_t kAnswerBytesMax = 1 << 20;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeList>;

// Invariant: no call lasts longer than the limit for each endpoint, and twice that with a login.
class EtcdClient : public Etcd {
 public:
  EtcdClient(EtcdPlace place, EtcdLogin login, int64_t limit_ms)
      : place_(std::move(place)), login_(std::move(login)), limit_ms_(limit_ms) {}

  Result<EtcdAnswer> Do(const EtcdRequest& request) override {
    std::string faults;
    for (size_t tried = 0; tried < place_.endpoints.size(); ++tried) {
      const Result<EtcdAnswer> answer = Ask(request);
      // Another endpoint of the same etcd would refuse as well.
      if (answer.ok() || answer.status().code() == Code::kInvalidArgument) return answer;
      faults += (faults.empty() ? "" : "; ") + answer.status().message();
      last_good_ = (last_good_ + 1) % place_.endpoints.size();
    }
    return Status(Code::kUnavailable, faults);
  }

 private:
  struct Reply {
    int status = 0;
    std::string body;
  };

  static size_t Take(char* bytes, size_t, size_t count, void* body) {
    auto& to = *static_cast<std::string*>(body);
    if (to.size() + count > kAnswerBytesMax) return 0;  // Ends the request.
    to.append(bytes, count);
    return count;
  }

  std::string Url() const {
    return (login_.ca.empty() ? "http://" : "https://") + place_.endpoints[last_good_];
  }
  Status At(const Status& status) const { return {status.code(), Url() + ": " + status.message()}; }

  // Asks the endpoint at hand, with a new token if the old one is no longer good.
  Result<EtcdAnswer> Ask(const EtcdRequest& request) {
    constexpr int kUnauthorized = 401;
    for (const bool again : {false, true}) {
      if (!login_.user.empty() && token_.empty()) HDPS_RETURN_IF_ERROR(LogIn());
      HDPS_ASSIGN_OR_RETURN(const Reply reply, Post(PathOf(request), BodyOf(place_, request)));
      if (reply.status == kUnauthorized && !login_.user.empty() && !again) {
        token_.clear();
        continue;
      }
      Result<EtcdAnswer> answer = ReadEtcdAnswer(request, reply.status, reply.body);
      return answer.ok() ? answer : At(answer.status());
    }
    return Status(Code::kInvalidArgument, Url() + " refuses the token that it has given");
  }

  Status LogIn() {
    HDPS_ASSIGN_OR_RETURN(const Reply reply, Post("/v3/auth/authenticate", LoginBody(login_)));
    const Result<std::string> token = ReadEtcdToken(reply.status, reply.body);
    if (!token.ok()) {
      return At({token.status().code(), "user '" + EscapeUntrusted(login_.user) +
                                            "' is not let in: " + token.status().message()});
    }
    token_ = *token;
    return {};
  }

  Result<Reply> Post(const std::string& path, const std::string& body) {
    CURL* const curl = curl_.get();
    if (curl == nullptr) return Status(Code::kUnavailable, "libcurl does not start");
    const std::string url = Url() + path;
    Headers headers(curl_slist_append(nullptr, "Content-Type: application/json"));
    if (!token_.empty()) {
      curl_slist_append(headers.get(), ("Authorization: " + token_).c_str());
    }
    Reply reply;
    char fault[CURL_ERROR_SIZE] = {};
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fault);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(limit_ms_));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");  // Whatever the environment says.
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    if (!login_.ca.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, login_.ca.c_str());
    if (!login_.cert.empty()) {
      curl_easy_setopt(curl, CURLOPT_SSLCERT, login_.cert.c_str());
      curl_easy_setopt(curl, CURLOPT_SSLKEY, login_.key.c_str());
    }
    const CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
      const std::string why = fault[0] != '\0' ? fault : curl_easy_strerror(code);
      return Status(Code::kUnavailable, Url() + ": " + EscapeUntrusted(why));
    }
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    return reply;
  }

  struct EndCurl {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };

  const EtcdPlace place_;
  const EtcdLogin login_;
  const int64_t limit_ms_;
  const std::unique_ptr<CURL, EndCurl> curl_{curl_easy_init()};
  size_t last_good_ = 0;  // Index of the endpoint that answered last.
  std::string token_;     // Empty: not logged in.
};

}  // namespace

Result<std::unique_ptr<Etcd>> NewEtcdClient(const EtcdPlace& place, const EtcdLogin& login,
                                            int64_t limit_ms) {
  return std::unique_ptr<Etcd>(std::make_unique<EtcdClient>(place, login, limit_ms));
}

#else

Result<std::unique_ptr<Etcd>> NewEtcdClient(const EtcdPlace&, const EtcdLogin&, int64_t) {
  return Status(Code::kInvalidArgument,
                "this hdps was built without libcurl, which etcd:// needs; install "
                "libcurl4-openssl-dev (scripts/install_deps.sh --election), then build again");
}

#endif

}  // namespace hdps
