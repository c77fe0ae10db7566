// Makes a job's whole documents: the job file, the spec of a JobSet, the comment above all.
#include <utility>

#include "tools/deploy/pods.h"

namespace hdps {

Yaml JobSetSpec(const Deployment& deployment, const PodPlace& place, const std::string& workers,
                const Yaml& worker_labels) {
  Yaml jobs = Yaml::List();
  for (const PodRole role : kPodRoles) {
    const bool is_worker = role == PodRole::kWorker;
    Yaml job = Yaml::Map();
    if (is_worker) job.Set("metadata", Yaml::Map({{"labels", worker_labels}}));
    job.Set("spec", IndexedJob(deployment, role, place));
    jobs.Add(Yaml::Map({{"name", is_worker ? workers : std::string(NameOf(role))},
                        {"replicas", 1},
                        {"template", std::move(job)}}));
  }
  return Yaml::Map(
      {{"network", Yaml::Map({{"enableDNSHostnames", true},
                              {"subdomain", deployment.name},
                              {"publishNotReadyAddresses", true}})},
       {"successPolicy",
        Yaml::Map({{"operator", "All"}, {"targetReplicatedJobs", Yaml::List({"scheduler"})}})},
       // A job that failed did so by a mistake of the operator, which another start does not mend.
       {"failurePolicy", Yaml::Map({{"maxRestarts", 0}})},
       {"replicatedJobs", std::move(jobs)}});
}

Yaml JobFileMap(const Deployment& deployment) {
  return Yaml::Map({{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", MetadataOf(deployment, deployment.name + "-job")},
                    {"immutable", true},
                    {"data", Yaml::Map({{"job.json", deployment.job_text}})}});
}

std::string PrintDocuments(const Deployment& deployment, const std::string& kind,
                           const std::vector<Yaml>& documents) {
  std::string text =
      "# Made by hdps deploy --to=" + kind + ". Before it is applied the cluster has:\n";
  text += "# - the claim " + deployment.claim +
          ", which pods of all nodes can write, with the job's data";
  text += deployment.data_folder.empty() ? "\n" : " in " + deployment.data_folder + "\n";
  if (!deployment.keys_secret.empty()) {
    text += "# - the Secret " + deployment.keys_secret +
            ": hdps keygen --out=keys && kubectl create secret generic " + deployment.keys_secret +
            " --from-file=keys\n";
  }
  if (!deployment.http_secret.empty()) {
    text += "# - the Secret " + deployment.http_secret + " with token, tls.crt and tls.key\n";
  }
  for (const Yaml& document : documents) text += "---\n" + document.Print();
  return text;
}

}  // namespace hdps
