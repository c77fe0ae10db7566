// Prints an InferenceService of KServe, and the ServingRuntime that answers with hdps serve.
#include <utility>

#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/pods.h"

namespace hdps {
namespace {

constexpr uint32_t kHttpPort = 8080;

Yaml ProbeOf(const std::string& path, uint32_t period_s, uint32_t failures) {
  constexpr uint32_t kTimeout_s = 5;
  return Yaml::Map({{"httpGet", Yaml::Map({{"path", path}, {"port", kHttpPort}})},
                    {"periodSeconds", period_s},
                    {"timeoutSeconds", kTimeout_s},
                    {"failureThreshold", failures}});
}

Yaml RuntimeOf(const Deployment& deployment) {
  constexpr uint32_t kStartPeriod_s = 2, kStartFailures = 300, kPeriod_s = 10, kFailures = 6;
  constexpr uint32_t kReadyPeriod_s = 5, kReadyFailures = 3;
  // Requests come through KServe's gateway, which names the service as its users do, and has TLS.
  const Yaml container = Yaml::Map(
      {{"name", "kserve-container"},
       {"image", deployment.image},
       {"command", Yaml::List({"hdps", "serve"})},
       {"args",
        Yaml::List({"--checkpoint=/mnt/models", "--name=" + deployment.name,
                    "--http=0.0.0.0:" + std::to_string(kHttpPort), "--http_names=*", "--insecure",
                    "--open", "--threads=" + std::to_string(deployment.serving.cores)})},
       {"ports", Yaml::List({Yaml::Map(
                     {{"name", "http1"}, {"containerPort", kHttpPort}, {"protocol", "TCP"}})})},
       {"startupProbe", ProbeOf("/v2/health/live", kStartPeriod_s, kStartFailures)},
       {"livenessProbe", ProbeOf("/v2/health/live", kPeriod_s, kFailures)},
       {"readinessProbe", ProbeOf("/v2/health/ready", kReadyPeriod_s, kReadyFailures)},
       {"resources", ResourcesOf(deployment.serving)},
       {"securityContext", ContainerSecurity()},
       {"volumeMounts", Yaml::List({Yaml::Map({{"name", "tmp"}, {"mountPath", "/tmp"}})})}});
  const Yaml tmp = Yaml::Map({{"name", "tmp"}, {"emptyDir", Yaml::Map()}});
  const Yaml format = Yaml::Map({{"name", "hdps"}, {"version", "1"}, {"autoSelect", true}});
  return Yaml::Map({{"apiVersion", "serving.kserve.io/v1alpha1"},
                    {"kind", "ServingRuntime"},
                    {"metadata", MetadataOf(deployment, deployment.name)},
                    {"spec", Yaml::Map({{"supportedModelFormats", Yaml::List({format})},
                                        {"protocolVersions", Yaml::List({"v1", "v2"})},
                                        {"containers", Yaml::List({container})},
                                        {"volumes", Yaml::List({tmp})}})}});
}

std::string Print(const Deployment& deployment) {
  const Yaml model =
      Yaml::Map({{"modelFormat", Yaml::Map({{"name", "hdps"}})},
                 {"runtime", deployment.name},
                 {"protocolVersion", "v2"},
                 {"storageUri", "pvc://" + deployment.claim + "/" + deployment.out}});
  // Not by Knative, which allows no startupProbe and no securityContext of a pod.
  Yaml metadata = MetadataOf(deployment, deployment.name);
  metadata.Set("annotations", Yaml::Map({{"serving.kserve.io/deploymentMode", "RawDeployment"}}));
  const Yaml service = Yaml::Map(
      {{"apiVersion", "serving.kserve.io/v1beta1"},
       {"kind", "InferenceService"},
       {"metadata", std::move(metadata)},
       {"spec", Yaml::Map({{"predictor", Yaml::Map({{"securityContext", PodSecurity(deployment)},
                                                    {"automountServiceAccountToken", false},
                                                    {"model", model}})}})}});
  return PrintDocuments(deployment, "kserve", {RuntimeOf(deployment), service});
}

}  // namespace

DeployKind KServeKind() {
  return {.name = "kserve",
          .help = "an InferenceService of KServe and its ServingRuntime, for hdps serve",
          .serves = true,
          // Of its Deployment: "-predictor-5d9c7f6b8c-x7x2p".
          .longest_suffix = [](const Deployment&) { return size_t{27}; },
          .print = Print};
}

}  // namespace hdps
