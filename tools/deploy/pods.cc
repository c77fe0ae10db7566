// Lays out pods: variables, volumes, probes, keys.
#include "tools/deploy/pods.h"

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

constexpr uint32_t kBackoffLimit = 1000;  // The scheduler itself gives up on what fails again.
constexpr uint32_t kGraceBeyondLeave_s = 15;
constexpr const char* kData = "/data";
constexpr const char* kJobFolder = "/etc/hdps";
constexpr const char* kKeys = "/keys";

std::string PortName(PodRole role) { return role == PodRole::kServer ? "rows" : "scheduler"; }

bool HasSecrets(const Deployment& d) { return !d.keys_secret.empty() || !d.http_secret.empty(); }
// Is true if the kubelet reaches the member's HTTP: it has a token and TLS, or nothing is secret.
bool HttpIsReached(const Deployment& d) { return d.insecure || !d.http_secret.empty(); }
uint32_t HttpPort(const Deployment& d) { return d.port - 1; }
uint32_t ListenPort(const Deployment& d, PodRole role, const PodPlace& place) {
  return role == PodRole::kServer && !place.scheduler_host.empty() ? d.port + 1 : d.port;
}

const MemberNeeds& NeedsOf(const Deployment& d, PodRole role) {
  if (role == PodRole::kScheduler) return d.scheduler;
  return role == PodRole::kServer ? d.server : d.worker;
}

// Kubernetes puts a variable's value in the place of $(NAME); "$$(" stands for "$(".
std::string Escaped(const std::string& value) {
  std::string escaped;
  for (size_t i = 0; i < value.size(); ++i) {
    escaped += value[i];
    if (value[i] == '$') escaped += '$';
  }
  return escaped;
}

// The variables of a container, in their order.
class Variables {
 public:
  void Set(const std::string& name, const std::string& value) {
    list_.Add(Yaml::Map({{"name", name}, {"value", value}}));
  }
  void SetNumber(const std::string& name, uint32_t value) { Set(name, std::to_string(value)); }
  // Takes the value from the pod itself.
  void SetFromPod(const std::string& name, const std::string& field) {
    list_.Add(
        Yaml::Map({{"name", name},
                   {"valueFrom", Yaml::Map({{"fieldRef", Yaml::Map({{"fieldPath", field}})}})}}));
  }
  Yaml Take() { return std::move(list_); }

 private:
  Yaml list_ = Yaml::List();
};

void SetConnections(const Deployment& d, PodRole role, const PodPlace& place, Variables* env) {
  if (d.keys_secret.empty()) {
    env->Set("HDPS_INSECURE", "true");
  } else {
    env->Set("HDPS_KEYS", std::string(kKeys) + "/job");
  }
  const std::string host = HttpIsReached(d) ? "$(POD_IP)" : "127.0.0.1";
  env->Set("HDPS_HTTP", host + ":" + std::to_string(HttpPort(d)));
  if (!d.http_secret.empty()) {
    env->Set("HDPS_HTTP_TOKEN_FILE", std::string(kKeys) + "/http/token");
    env->Set("HDPS_HTTP_CERT", std::string(kKeys) + "/http/tls.crt");
    env->Set("HDPS_HTTP_KEY", std::string(kKeys) + "/http/tls.key");
  }
  if (role == PodRole::kScheduler && !place.scheduler_host.empty()) {
    env->Set("HDPS_HTTP_NAMES", place.scheduler_host);
  }
}

Yaml VariablesOf(const Deployment& d, PodRole role, const PodPlace& place) {
  const bool told = !place.scheduler_host.empty();  // By these variables, not by an operator's.
  Variables env;
  env.SetFromPod("POD_IP", "status.podIP");
  if (told) env.Set("HDPS_ROLE", std::string(NameOf(role)));
  env.Set("HDPS_JOB", std::string(kJobFolder) + "/job.json");
  if (!d.set.empty()) env.Set("HDPS_SET", Escaped(d.set));
  env.Set("HDPS_OUT", std::string(kData) + "/" + d.out);
  if (told) {
    env.SetNumber("HDPS_SERVERS", d.servers);
    env.SetNumber("HDPS_WORKERS", d.workers);
  }
  const std::string listen = "tcp://$(POD_IP):" + std::to_string(ListenPort(d, role, place));
  if (role == PodRole::kServer || (role == PodRole::kScheduler && told)) {
    env.Set("HDPS_LISTEN", listen);
  }
  if (role != PodRole::kScheduler) {
    if (told) {
      env.Set("HDPS_SCHEDULER", "tcp://" + place.scheduler_host + ":" + std::to_string(d.port));
    }
    if (place.indexed) {
      env.SetFromPod("HDPS_RANK",
                     "metadata.annotations['batch.kubernetes.io/job-completion-index']");
    }
    env.SetNumber("HDPS_THREADS", NeedsOf(d, role).cores);
  }
  if (role == PodRole::kServer) env.Set("HDPS_SPILL_PATH", "/spill");
  if (role == PodRole::kWorker && d.allreduce) {
    env.Set("HDPS_COLLECTIVE_HOST", "$(POD_IP)");
    if (d.insecure_collective) env.Set("HDPS_INSECURE_COLLECTIVE", "true");
  }
  env.Set("HDPS_ON_TERM", "leave");
  env.SetNumber("HDPS_LEAVE_S", d.leave_s);
  env.Set("HDPS_RESTART", "never");
  SetConnections(d, role, place, &env);
  return env.Take();
}

// Asks a path of the member's HTTP, by the kubelet, or by a shell in the pod where only that
// reaches it.
Yaml ProbeOf(const Deployment& d, const std::string& path, uint32_t period_s, uint32_t failures) {
  Yaml probe = Yaml::Map();
  if (HttpIsReached(d)) {
    probe.Set("httpGet", Yaml::Map({{"path", path},
                                    {"port", "http"},
                                    {"scheme", d.http_secret.empty() ? "HTTP" : "HTTPS"}}));
  } else {
    const std::string port = std::to_string(HttpPort(d));
    probe.Set(
        "exec",
        Yaml::Map({{"command",
                    Yaml::List({"bash", "-c",
                                "exec 3<>/dev/tcp/127.0.0.1/" + port + " && printf 'GET " + path +
                                    " HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: "
                                    "close\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && "
                                    "[[ $status == 200 ]]"})}}));
  }
  constexpr uint32_t kTimeout_s = 5;
  probe.Set("periodSeconds", period_s);
  probe.Set("timeoutSeconds", kTimeout_s);
  probe.Set("failureThreshold", failures);
  return probe;
}

Yaml Mount(const std::string& volume, const std::string& path, bool read_only = false) {
  Yaml mount = Yaml::Map({{"name", volume}, {"mountPath", path}});
  if (read_only) mount.Set("readOnly", true);
  return mount;
}

Yaml Secret(const std::string& volume, const std::string& secret,
            const std::vector<std::string>& keys) {
  constexpr int kReadableByGroup = 0440;
  Yaml items = Yaml::List();
  for (const std::string& key : keys) {
    items.Add(Yaml::Map({{"key", key}, {"path", key}}));
  }
  return Yaml::Map({{"name", volume},
                    {"secret", Yaml::Map({{"secretName", secret},
                                          {"defaultMode", kReadableByGroup},
                                          {"items", std::move(items)}})}});
}

Yaml EmptyFolder(const std::string& volume, Yaml options = Yaml::Map()) {
  return Yaml::Map({{"name", volume}, {"emptyDir", std::move(options)}});
}

Yaml VolumesOf(const Deployment& d, PodRole role) {
  Yaml volumes = Yaml::List();
  volumes.Add(Yaml::Map({{"name", "job"}, {"configMap", Yaml::Map({{"name", d.name + "-job"}})}}));
  volumes.Add(Yaml::Map(
      {{"name", "data"}, {"persistentVolumeClaim", Yaml::Map({{"claimName", d.claim}})}}));
  volumes.Add(EmptyFolder("tmp"));
  if (role == PodRole::kServer) volumes.Add(EmptyFolder("spill"));
  if (HasSecrets(d)) {
    volumes.Add(EmptyFolder("keys", Yaml::Map({{"medium", "Memory"}, {"sizeLimit", "1Mi"}})));
  }
  if (!d.keys_secret.empty()) {
    volumes.Add(
        Secret("keys-secret", d.keys_secret, {"allowed", std::string(NameOf(role)) + ".key"}));
  }
  if (!d.http_secret.empty()) {
    volumes.Add(Secret("http-secret", d.http_secret, {"token", "tls.crt", "tls.key"}));
  }
  return volumes;
}

// Copies the Secrets into memory as files of the member's user alone. A mounted Secret has links,
// and files that its group can read.
Yaml CopySecrets(const Deployment& d) {
  Yaml mounts = Yaml::List({Mount("keys", kKeys)});
  std::string script;
  const auto copy = [&](const std::string& volume, const std::string& folder) {
    const std::string from = "/secrets/" + folder, to = std::string(kKeys) + "/" + folder;
    script += (script.empty() ? "" : " && ") + ("install -d -m 0700 " + to) +
              " && install -m 0600 -t " + to + " " + from + "/*";
    mounts.Add(Mount(volume, from, true));
  };
  if (!d.keys_secret.empty()) copy("keys-secret", "job");
  if (!d.http_secret.empty()) copy("http-secret", "http");
  constexpr uint64_t kBytes = uint64_t{32} << 20;
  return Yaml::Map({{"name", "keys"},
                    {"image", d.image},
                    {"command", Yaml::List({"sh", "-c", script})},
                    {"resources", ResourcesOf({kBytes, kBytes, 1, 0})},
                    {"securityContext", ContainerSecurity()},
                    {"volumeMounts", std::move(mounts)}});
}

Yaml PortsOf(const Deployment& d, PodRole role, const PodPlace& place) {
  const auto port = [](const std::string& name, uint32_t number) {
    return Yaml::Map({{"name", name}, {"containerPort", number}, {"protocol", "TCP"}});
  };
  Yaml ports = Yaml::List();
  if (role != PodRole::kWorker || !place.port_name.empty()) {
    const std::string name = place.port_name.empty() ? PortName(role) : place.port_name;
    ports.Add(port(name, ListenPort(d, role, place)));
  }
  if (role == PodRole::kServer && !d.insecure) {
    ports.Add(port("encrypted-rows", ListenPort(d, role, place) + 1));
  }
  ports.Add(port("http", HttpPort(d)));
  return ports;
}

Yaml MemberContainer(const Deployment& d, PodRole role, const PodPlace& place) {
  Yaml mounts =
      Yaml::List({Mount("job", kJobFolder, true), Mount("data", kData), Mount("tmp", "/tmp")});
  if (role == PodRole::kServer) mounts.Add(Mount("spill", "/spill"));
  if (HasSecrets(d)) mounts.Add(Mount("keys", kKeys, true));
  const std::string folder =
      std::string(kData) + (d.data_folder.empty() ? "" : "/") + d.data_folder;
  constexpr uint32_t kStartPeriod_s = 2, kStartFailures = 150, kPeriod_s = 10, kFailures = 6;
  constexpr uint32_t kReadyPeriod_s = 5, kReadyFailures = 3;
  return Yaml::Map({{"name", place.container},
                    {"image", d.image},
                    {"command", Yaml::List({"hdps", "member"})},
                    {"workingDir", folder},
                    {"env", VariablesOf(d, role, place)},
                    {"ports", PortsOf(d, role, place)},
                    {"startupProbe", ProbeOf(d, "/healthz", kStartPeriod_s, kStartFailures)},
                    {"livenessProbe", ProbeOf(d, "/healthz", kPeriod_s, kFailures)},
                    {"readinessProbe", ProbeOf(d, "/readyz", kReadyPeriod_s, kReadyFailures)},
                    {"resources", ResourcesOf(NeedsOf(d, role))},
                    {"securityContext", ContainerSecurity()},
                    {"volumeMounts", std::move(mounts)}});
}

}  // namespace

std::string_view NameOf(PodRole role) {
  if (role == PodRole::kScheduler) return "scheduler";
  return role == PodRole::kServer ? "server" : "worker";
}

uint32_t CountOf(const Deployment& deployment, PodRole role) {
  if (role == PodRole::kScheduler) return 1;
  return role == PodRole::kServer ? deployment.servers : deployment.workers;
}

size_t LongestSuffix(const Deployment& deployment, std::string_view between) {
  size_t longest = 0;
  for (const PodRole role : kPodRoles) {
    const size_t number = std::to_string(CountOf(deployment, role) - 1).size();
    longest = std::max(longest, 1 + NameOf(role).size() + between.size() + number + kDrawnSuffix);
  }
  return longest;
}

Yaml LabelsOf(const Deployment& deployment) {
  return Yaml::Map(
      {{"app.kubernetes.io/name", "hdps"}, {"app.kubernetes.io/instance", deployment.name}});
}

Yaml LabelsOf(const Deployment& deployment, PodRole role) {
  Yaml labels = LabelsOf(deployment);
  labels.Set("app.kubernetes.io/component", std::string(NameOf(role)));
  return labels;
}

Yaml MetadataOf(const Deployment& deployment, const std::string& name) {
  Yaml metadata = Yaml::Map({{"name", name}});
  if (!deployment.name_space.empty()) metadata.Set("namespace", deployment.name_space);
  metadata.Set("labels", LabelsOf(deployment));
  return metadata;
}

Yaml ResourcesOf(const MemberNeeds& needs) {
  const auto mebibytes = [](uint64_t bytes) { return std::to_string(bytes >> 20) + "Mi"; };
  const std::string cores = std::to_string(needs.cores);
  Yaml requests = Yaml::Map({{"cpu", cores}, {"memory", mebibytes(needs.request_bytes)}});
  Yaml limits = Yaml::Map({{"cpu", cores}, {"memory", mebibytes(needs.limit_bytes)}});
  if (needs.gpus > 0) {
    requests.Set("nvidia.com/gpu", std::to_string(needs.gpus));
    limits.Set("nvidia.com/gpu", std::to_string(needs.gpus));
  }
  return Yaml::Map({{"requests", std::move(requests)}, {"limits", std::move(limits)}});
}

Yaml ContainerSecurity() {
  return Yaml::Map({{"allowPrivilegeEscalation", false},
                    {"readOnlyRootFilesystem", true},
                    {"capabilities", Yaml::Map({{"drop", Yaml::List({"ALL"})}})}});
}

Yaml PodSecurity(const Deployment& deployment) {
  return Yaml::Map({{"runAsNonRoot", true},
                    {"runAsUser", deployment.uid},
                    {"runAsGroup", deployment.uid},
                    {"fsGroup", deployment.uid},
                    {"fsGroupChangePolicy", "OnRootMismatch"},
                    {"seccompProfile", Yaml::Map({{"type", "RuntimeDefault"}})}});
}

Yaml PodTemplate(const Deployment& deployment, PodRole role, const PodPlace& place) {
  Yaml spec = Yaml::Map();
  if (!place.restart_policy.empty()) spec.Set("restartPolicy", place.restart_policy);
  if (!place.subdomain.empty()) spec.Set("subdomain", place.subdomain);
  // Variables of services would be taken for flags: that of a service hdps is HDPS_PORT.
  spec.Set("enableServiceLinks", false);
  spec.Set("automountServiceAccountToken", false);
  spec.Set("terminationGracePeriodSeconds", deployment.leave_s + kGraceBeyondLeave_s);
  spec.Set("securityContext", PodSecurity(deployment));
  if (HasSecrets(deployment)) {
    spec.Set("initContainers", Yaml::List({CopySecrets(deployment)}));
  }
  spec.Set("containers", Yaml::List({MemberContainer(deployment, role, place)}));
  spec.Set("volumes", VolumesOf(deployment, role));
  return Yaml::Map({{"metadata", Yaml::Map({{"labels", LabelsOf(deployment, role)}})},
                    {"spec", std::move(spec)}});
}

Yaml IndexedJob(const Deployment& deployment, PodRole role, const PodPlace& place) {
  constexpr int kMistakeOfTheOperator = 2;
  const Yaml fails =
      Yaml::Map({{"action", "FailJob"},
                 {"onExitCodes", Yaml::Map({{"containerName", place.container},
                                            {"operator", "In"},
                                            {"values", Yaml::List({kMistakeOfTheOperator})}})}});
  const Yaml is_taken_away =
      Yaml::Map({{"action", "Ignore"},
                 {"onPodConditions",
                  Yaml::List({Yaml::Map({{"type", "DisruptionTarget"}, {"status", "True"}})})}});
  const uint32_t count = CountOf(deployment, role);
  return Yaml::Map(
      {{"completionMode", "Indexed"},
       {"completions", count},
       {"parallelism", count},
       {"backoffLimit", kBackoffLimit},
       {"podFailurePolicy", Yaml::Map({{"rules", Yaml::List({fails, is_taken_away})}})},
       {"template", PodTemplate(deployment, role, place)}});
}

}  // namespace hdps
