#pragma once

#include <array>
#include <string>
#include <vector>

// What each alert is for, as the samples that the programs serve then. A sample comes each 30 s.
namespace gitops::test {

struct FiringCase {
  struct Series {
    std::string metric;  // with labels in braces, but for those that Prometheus adds
    std::string values;  // as in the tests of promtool
  };
  std::string group;  // the rules, and the pod "GROUP-0" that is scraped
  std::string alert;
  std::vector<Series> series;
  std::string at;  // it fires then, and did not 30 s after the start
};

inline std::vector<FiringCase> reporter_cases(const std::string& group) {
  return {
      {group, "EventReporterMissing", {}, "11m"},
      {group,
       "EventReporterControlPlaneAway",
       {{"gitops_event_reporter_breaker_state", "0+0x4 1+0x60"}},
       "15m"},
      {group,
       "EventReporterBehind",
       {{"gitops_event_reporter_oldest_dirty_seconds", "0+30x80"}},
       "17m"},
      {group,
       "EventReporterOverloaded",
       {{"gitops_event_reporter_overdue_objects", "0+0x4 5+0x60"}},
       "20m"},
      // The counter appears with its first count.
      {group,
       "EventReporterDeadLetters",
       {{"gitops_event_reporter_dead_letters_total{reason=\"400\"}", "_x60 1+0x60"}},
       "31m"},
      {group,
       "EventReporterLedgerNotWritten",
       {{"gitops_event_reporter_ledger_failures_total{reason=\"full\"}", "0+1x60"}},
       "15m"},
      {group,
       "EventReporterLedgerDamaged",
       {{"gitops_event_reporter_ledger_rebuilt_total", "0+0x4 1+0x20"},
        {"gitops_event_reporter_ledger_damaged_rows_total", "0+0x30"}},
       "5m"},
      {group,
       "EventReporterObjectsSetAside",
       {{"gitops_event_reporter_watch_quarantined_total{resource=\"applications\"}",
         "0+0x4 1+0x20"}},
       "5m"},
      {group,
       "EventReporterUnreadable",
       {{"gitops_event_reporter_unreadable_total", "0+0x4 1+0x20"}},
       "5m"},
  };
}

inline std::vector<FiringCase> application_reporter_cases() {
  const std::string group = "runtime-event-reporter";
  return {
      {group,
       "EventReporterArgoCdFails",
       {{"gitops_event_reporter_errors_total{peer=\"argocd\", code=\"unavailable\"}", "0+1x60"},
        {"gitops_event_reporter_argocd_reads_total{call=\"resource_tree\"}", "0+2x60"}},
       "15m"},
      {group,
       "EventReporterWatchSilent",
       {{"gitops_event_reporter_watch_last_event_timestamp_seconds{resource=\"applications\"}",
         "0+0x60"}},
       "17m"},
  };
}

inline std::vector<FiringCase> resource_reporter_cases() {
  const std::string group = "cluster-event-reporter";
  return {
      {group,
       "EventReporterWatchSilent",
       {{"gitops_event_reporter_watch_last_event_timestamp_seconds{resource=\"rollouts\", "
         "cluster=\"in-cluster\"}",
         "0+0x60"}},
       "17m"},
      {group,
       "EventReporterClustersAway",
       {{"gitops_event_reporter_failing_clusters", "0+0x4 1+0x60"},
        {"gitops_event_reporter_skipped_clusters", "0+0x60"}},
       "15m"},
  };
}

inline std::vector<FiringCase> router_cases_of_alerts() {
  const std::string group = "internal-router";
  return {
      {group, "RequestRouterMissing", {}, "11m"},
      {group,
       "RequestRouterErrors",
       {{"gitops_router_requests_total{route=\"app-proxy\", code=\"2xx\"}", "0+2x60"},
        {"gitops_router_requests_total{route=\"app-proxy\", code=\"5xx\"}", "0+1x60"}},
       "15m"},
      {group,
       "RequestRouterTurnsWebhooksAway",
       {{"gitops_router_requests_total{route=\"webhooks\", code=\"4xx\"}", "0+1x60"}},
       "15m"},
      {group,
       "RequestRouterRoutesRefused",
       {{"gitops_router_bad_reloads_total", "0+0x4 1+0x20"}},
       "5m"},
  };
}

inline std::vector<FiringCase> app_proxy_cases_of_alerts() {
  const std::string group = "cap-app-proxy";
  return {
      {group, "AppProxyMissing", {}, "11m"},
      {group, "AppProxyRulesNotFresh", {{"gitops_app_proxy_rules_loaded", "7+0x4 6+0x60"}}, "20m"},
      {group,
       "AppProxyUsersUnknown",
       {{"gitops_app_proxy_user_checks_total{result=\"unknown\"}", "0+1x60"},
        {"gitops_app_proxy_user_checks_total{result=\"known\"}", "0+1x60"}},
       "15m"},
      {group,
       "AppProxyGitHostFails",
       {{"gitops_app_proxy_git_host_failures_total", "0+1x60"},
        {"gitops_app_proxy_git_host_requests_total", "0+2x60"}},
       "15m"},
      {group,
       "AppProxyGitHostThrottles",
       {{"gitops_app_proxy_git_host_throttled_total", "0+0x4 1+0x90"}},
       "35m"},
  };
}

inline std::vector<FiringCase> tunnel_client_cases() {
  const std::string group = "codefresh-tunnel-client";
  return {
      {group, "TunnelClientMissing", {}, "11m"},
      {group, "TunnelClientNotServing", {{"gitops_tunnel_client_serving", "1+0x4 0+0x60"}}, "10m"},
      {group,
       "TunnelClientUnstable",
       {{"gitops_tunnel_client_sessions_total{server=\"a\"}", "0+1x90"}},
       "25m"},
      {group,
       "TunnelClientUpstreamRefuses",
       {{"gitops_tunnel_client_failed_connections_total", "0+1x60"},
        {"gitops_tunnel_client_connections_total", "0+2x60"}},
       "15m"},
  };
}

inline std::vector<FiringCase> tunnel_server_cases() {
  const std::string group = "tunnel-server";
  return {
      {group, "TunnelServerMissing", {}, "11m"},
      {group,
       "TunnelServerLacksHosts",
       {{"gitops_tunnel_server_hosts{pod=\"tunnel-server-1\"}", "3+0x60"},
        {"gitops_tunnel_server_hosts", "3+0x4 1+0x60"}},
       "15m"},
      {group,
       "TunnelServerLostItsHosts",
       {{"gitops_tunnel_server_hosts", "2+0x130 0+0x40"}},
       "75m"},
      {group,
       "TunnelServerErrors",
       {{"gitops_tunnel_server_requests_total{host=\"a\", code=\"2xx\"}", "0+2x60"},
        {"gitops_tunnel_server_requests_total{host=\"a\", code=\"5xx\"}", "0+1x60"}},
       "15m"},
      {group,
       "TunnelServerRefusesClients",
       {{"gitops_tunnel_server_refused_client_connections_total", "0+3x90"},
        {"gitops_tunnel_server_client_connections_total", "0+4x90"}},
       "35m"},
  };
}

inline std::vector<FiringCase> control_plane_cases() {
  const std::string group = "control-plane";
  const std::string p = "gitops_control_plane_";
  return {
      // A control plane in another namespace is well.
      {group, "ControlPlaneMissing", {{p + "queued_events{namespace=\"other\"}", "0+0x60"}}, "6m"},
      {group,
       "ControlPlaneDoesNotStore",
       {{p + "failed_batches_total", "0+1x60"},
        {p + "events_total{outcome=\"stored\"}", "9+0x60"},
        {p + "events_total{namespace=\"other\", outcome=\"stored\"}", "0+1x60"}},
       "7m"},
      {group,
       "ControlPlaneVolumeFills",
       {{p + "volume_free_bytes", "900000000-50000000x60"}},
       "12m"},
      {group,
       "ControlPlaneRefusesEvents",
       {{p + "events_refused_total{reason=\"busy\"}", "0+1x90"}},
       "32m"},
      {group, "ControlPlaneQuarantine", {{p + "events_quarantined_total", "0+0x4 1+0x20"}}, "5m"},
      {group,
       "ControlPlaneCredentialsUnknown",
       {{p + "credential_checks_total{result=\"unknown\"}", "0+1x60"},
        {p + "credential_checks_total{result=\"known\"}", "0+1x60"}},
       "15m"},
      {group,
       "ControlPlaneLoginsRefused",
       {{p + "logins_total{result=\"failed\"}", "0+3x60"},
        {p + "logins_total{result=\"limited\"}", "0+3x60"}},
       "15m"},
      {group, "ControlPlaneTunnelNotTaken", {{p + "tunnel_bans_pending", "0+0x4 1+0x60"}}, "10m"},
      {group,
       "ControlPlaneAuditNotStored",
       {{p + "audit_entries_not_stored_total", "0+0x4 1+0x20"}},
       "5m"},
      {group, "ControlPlaneStorageFills", {{p + "storage_state", "1+0x4 2+0x60"}}, "20m"},
      {group, "ControlPlanePagesAreLate", {{p + "live_read_failures_total", "0+1x60"}}, "15m"},
      {group,
       "ControlPlaneProviderLoginsFail",
       {{p + "sso_logins_total{result=\"failed\"}", "0+1x60"}},
       "10m"},
  };
}

inline std::vector<FiringCase> firing_cases() {
  std::vector<FiringCase> all;
  for (const auto& cases :
       {reporter_cases("runtime-event-reporter"), reporter_cases("cluster-event-reporter"),
        application_reporter_cases(), resource_reporter_cases(), router_cases_of_alerts(),
        app_proxy_cases_of_alerts(), tunnel_client_cases(), tunnel_server_cases(),
        control_plane_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace gitops::test
