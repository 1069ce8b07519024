"""The Grafana dashboards as code: `python -m helm.dashboards` writes their JSON into the chart."""
