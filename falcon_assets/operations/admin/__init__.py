"""Operations on the installation: its audit, its versions, its health."""
