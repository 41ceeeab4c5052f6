"""An order means its examination in the usual words of a ward, and never another one."""

from __future__ import annotations

import pytest

from data.conditions.table import load_tables
from diagnosis_agent.examinations import ORDERS, named, table_key

MEANT = {
    "cbc": ["CBC with differential", "hemoglobin and hematocrit", "急查血常规", "WBC count"],
    "troponin": ["Troponin T", "serial troponins", "high sensitivity troponin", "cardiac enzymes"],
    "leg_ultrasound": ["LE Doppler"],
    "head_ct": ["CT head without contrast", "stat head CT", "头颅CT平扫"],
    "chest_xray": ["CXR PA and lateral", "portable chest X-ray", "拍个胸片"],
    "abdominal_ct": ["CT abdomen/pelvis with IV contrast", "contrast-enhanced CT of the abdomen and pelvis"],
    "brain_mri": ["MRI brain with and without contrast", "头颅MRI平扫+弥散"],
    "liver_panel": ["ALT and AST", "liver function panel", "查肝功能"],
    "coagulation": ["PT/INR"],
    "blood_culture": ["two sets of blood cultures", "血培养两套"],
    "csf": ["lumbar puncture and CSF cell count"],
    "fasting_glucose": ["fasting blood glucose", "serum glucose level"],
}  # fmt: skip
NONE = [
    "CBC with CRP", "CBC/CRP", "CT", "MRI", "blood", "thyroid", "thyroid scan", "lung", "CT neck with contrast",
    "cervical spine MRI", "颈椎MRI", "丙肝抗体", "coronary angiography", "冠脉造影", "sacroiliac CT", "dual-energy CT",
    "LE arterial duplex",
    "transesophageal echocardiogram", "sigmoidoscopy", "liver biopsy", "blood type", "lumbar spine CT", "检查", "彩超",
]  # fmt: skip


@pytest.mark.parametrize(("key", "order"), [(key, one) for key in MEANT for one in MEANT[key]])
def test_usual_words_mean_their_examination(key: str, order: str) -> None:
    name = named(order)
    assert name
    assert table_key(name) == key


@pytest.mark.parametrize("order", NONE)
def test_another_examination_and_several_are_none(order: str) -> None:
    assert named(order) is None


def test_every_further_name_is_understood() -> None:
    examinations = load_tables().examinations
    for key, names in ORDERS["names"].items():
        assert {named(name) for name in names} == {examinations[key].en}, key
