from streamgp.cli.demo.demonstrating import run_demo

__all__ = ["run_demo"]
