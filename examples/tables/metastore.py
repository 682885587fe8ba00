"""Serves a Hive Metastore on this machine, from the jars that come with PySpark: ``python metastore.py FOLDER [PORT]``.

For trying out and for tests: it keeps its tables in an embedded database below the folder, or in the PostgreSQL of
``--database``, asks nobody who he is, and listens on 127.0.0.1 only, which the metastore's own command cannot: so its
server is put together here.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark.find_spark_home import _find_spark_home

from falcon_assets.compute.spark.jvm import utf8_locale

_METASTORE = "org.apache.hadoop.hive.metastore"
_DERBY, _POSTGRES = "org.apache.derby.iapi.jdbc.AutoloadedDriver", "org.postgresql.Driver"


def serve(folder: Path, port: int, database: str | None = None, driver: str = "") -> None:
    """Serves until the process is ended; says on standard output when it is ready, and where.

    Args:
        folder: Where the tables' definitions are kept, and the data of tables without a location.
        port: Of 127.0.0.1; 0: a free one.
        database: JDBC URL of a PostgreSQL database that keeps the definitions; None: they are below the folder.
        driver: The jar of PostgreSQL's JDBC driver.
    """
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"port {port} is taken: choose another one, `make metastore PORT=19083`")
    folder = folder.absolute()  # it becomes the path of a URL
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(utf8_locale())  # the JVM inherits it: else it can make no folder named "hömé"
    jars = f"{_find_spark_home()}/jars/*:{driver}"
    derby = {"stream.error.file": f"{folder}/derby.log", "locks.deadlockTimeout": 1, "locks.waitTimeout": 10}
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", *(f"-Dderby.{key}={value}" for key, value in derby.items())]
    chosen, secret = launch_gateway(
        classpath=jars, javaopts=options, die_on_exit=True, enable_auth=True, redirect_stderr=sys.stderr
    )[:2]
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=chosen, auth_token=secret, auto_convert=True))
    java: Any = gateway.jvm
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    for key, value in {
        "javax.jdo.option.ConnectionURL": database or f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "javax.jdo.option.ConnectionDriverName": _POSTGRES if database else _DERBY,
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.uris": "",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "NONE",
    }.items():
        conf.set(key, value)

    def of(package: str, name: str) -> Any:
        return java.java.lang.Class.forName(f"{package}.{name}")

    handler_class = of(_METASTORE, "HiveMetaStore$HMSHandler")
    string, boolean = of("java.lang", "String"), java.java.lang.Boolean.TYPE
    signature = gateway.new_array(java.java.lang.Class, 3)
    signature[0], signature[1], signature[2] = string, of("org.apache.hadoop.hive.conf", "HiveConf"), boolean
    arguments = gateway.new_array(java.java.lang.Object, 3)
    arguments[0], arguments[1], arguments[2] = "metastore", conf, False
    handler = handler_class.getConstructor(signature).newInstance(arguments)
    proxy = java.org.apache.hadoop.hive.metastore.RetryingHMSHandler.getProxy(conf, handler, True)
    address = java.java.net.InetSocketAddress("127.0.0.1", port)
    thrift = java.org.apache.thrift
    listener = thrift.transport.TServerSocket(address)
    processor = java.org.apache.hadoop.hive.metastore.TSetIpAddressProcessor(proxy)
    pool = getattr(thrift.server, "TThreadPoolServer$Args")(listener).processor(processor)
    server = thrift.server.TThreadPoolServer(pool)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: sys.exit(0))
    sys.stdout.write(f"thrift://127.0.0.1:{listener.getServerSocket().getLocalPort()} is ready\n")
    sys.stdout.flush()
    server.serve()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serves a Hive Metastore on 127.0.0.1.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("port", type=int, nargs="?", default=9083)
    parser.add_argument("--database", help="JDBC URL of a PostgreSQL database for the definitions of tables")
    parser.add_argument("--driver", default="", help="jar of PostgreSQL's JDBC driver")
    chosen = parser.parse_args()
    serve(chosen.folder, chosen.port, chosen.database, chosen.driver)
